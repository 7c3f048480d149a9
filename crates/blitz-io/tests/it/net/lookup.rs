//! Tests `ToSocketAddrs` and `lookup_host` with every form of an address.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
};

use blitz_io::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket, lookup_host};

use crate::support::{
    runtimes::{on_all_kinds, on_one_thread},
    sockets,
};

async fn all(host: impl ToSocketAddrs) -> Vec<SocketAddr> {
    lookup_host(host).await.expect("it is an address").collect()
}

#[test]
fn every_form_of_a_number_is_taken_as_it_is() {
    on_all_kinds(|| async {
        let (v4, v6) = (Ipv4Addr::new(127, 0, 0, 9), Ipv6Addr::LOCALHOST);
        let wanted = SocketAddr::from((v4, 80));
        assert_eq!(all(wanted).await, [wanted]);
        assert_eq!(all(&wanted).await, [wanted]);
        assert_eq!(all(SocketAddrV4::new(v4, 80)).await, [wanted]);
        assert_eq!(all((v4, 80)).await, [wanted]);
        assert_eq!(all((IpAddr::from(v4), 80)).await, [wanted]);
        assert_eq!(all("127.0.0.9:80").await, [wanted]);
        assert_eq!(all(("127.0.0.9", 80)).await, [wanted]);
        assert_eq!(all("127.0.0.9:80".to_owned()).await, [wanted]);
        assert_eq!(all(("127.0.0.9".to_owned(), 80)).await, [wanted]);
        let six = SocketAddr::from((v6, 81));
        assert_eq!(all(SocketAddrV6::new(v6, 81, 0, 0)).await, [six]);
        assert_eq!(all((v6, 81)).await, [six]);
        assert_eq!(all("[::1]:81").await, [six]);
        let both = [wanted, six];
        assert_eq!(all(&both[..]).await, both);
    });
}

#[test]
fn a_name_is_looked_up() {
    on_all_kinds(|| async {
        let found = all(("localhost", 80)).await;
        assert!(found.iter().any(|address| address.ip().is_loopback()), "{found:?}");
        let found = all("localhost:81").await;
        assert!(found.iter().all(|address| address.port() == 81), "{found:?}");
    });
}

#[test]
fn invalid_addresses_are_errors() {
    on_all_kinds(|| async {
        for wrong in ["127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", ""] {
            let error = lookup_host(wrong).await.map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong}");
        }
        assert!(lookup_host("no such name.invalid:80").await.is_err());
    });
}

#[test]
fn no_address_at_all_is_an_error() {
    on_all_kinds(|| async {
        let none: &[SocketAddr] = &[];
        let error = TcpStream::connect(none).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = TcpListener::bind(none).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = UdpSocket::bind(none).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn addresses_are_tried_until_one_works() {
    on_all_kinds(|| async {
        // Bound and never listening, so connections are refused, and no other socket gets the port.
        let deserted = blitz_io::net::TcpSocket::new_v4().unwrap();
        deserted.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let dead = deserted.local_addr().unwrap();
        let (listener, alive) = sockets::listener().await;
        let client = TcpStream::connect(&[dead, alive][..]).await.unwrap();
        assert_eq!(client.peer_addr().unwrap(), alive);
        listener.accept().await.unwrap();
        let error = TcpStream::connect(&[dead, dead][..]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        // `alive` is in use.
        let any = "127.0.0.1:0".parse().unwrap();
        TcpListener::bind(&[alive, any][..]).await.unwrap();
    });
}

#[test]
fn an_address_that_is_not_here_cannot_be_bound() {
    on_one_thread(async {
        // An address that is reserved for documentation: no machine has it.
        let error = TcpListener::bind("192.0.2.1:0").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
        // Wine binds this address.
        #[cfg(unix)]
        {
            let error = UdpSocket::bind("192.0.2.1:0").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
        }
    });
}
