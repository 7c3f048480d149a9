//! Names and addresses.
//!
//! What is an address already is one at once, and what cannot be one is an error at once. A
//! name is looked up by the system: see `lookup`.

#![forbid(unsafe_code)]

use std::{
    future::{Future, Ready, ready},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    option, vec,
};

use super::{
    error,
    lookup::{Addresses, Lookup},
};

/// Converts or resolves without blocking to one or more `SocketAddr` values.
///
/// It is for what the operations of this module take as an address:
///
/// - [`SocketAddr`], [`SocketAddrV4`], [`SocketAddrV6`];
/// - an [`IpAddr`], [`Ipv4Addr`] or [`Ipv6Addr`] with a port;
/// - a slice of `SocketAddr`;
/// - a `str` or `String` of the form `host:port`, or a host with a port. If the host is
///   a name, it is looked up.
///
/// It cannot be implemented outside of this crate. To look up a name without using it,
/// call [`lookup_host`].
///
/// # Examples
///
/// ```
/// use blitz_io::net::{ToSocketAddrs, UdpSocket};
///
/// async fn bind(addr: impl ToSocketAddrs) -> std::io::Result<u16> {
///     Ok(UdpSocket::bind(addr).await?.local_addr()?.port())
/// }
///
/// # blitz_io::run(async {
/// assert_ne!(bind("127.0.0.1:0").await?, 0);
/// assert_ne!(bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?, 0);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
pub trait ToSocketAddrs: sealed::Resolve {}

/// One by one, so that they are in the documentation: that is where users look what they
/// can pass.
macro_rules! to_socket_addrs {
    ($($type:ty),* $(,)?) => { $(impl ToSocketAddrs for $type {})* };
}

to_socket_addrs! {
    SocketAddr,
    SocketAddrV4,
    SocketAddrV6,
    (IpAddr, u16),
    (Ipv4Addr, u16),
    (Ipv6Addr, u16),
    &[SocketAddr],
    str,
    (&str, u16),
    String,
    (String, u16),
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {}

/// Looks up the addresses of a host.
///
/// The answer may have no address in it, or several, and which comes first is up to the
/// system. What is an address already is its own answer, at once.
///
/// A name is asked of the system (`getaddrinfo`) on a thread for blocking work. It may take
/// as long as it likes there, so look-ups have no more than a quarter of
/// [`max_blocking_threads`](crate::runtime::Builder::max_blocking_threads), and at least one:
/// the others wait in line, first come, first served, and the rest of the threads stay free
/// for other work. A runtime whose shutdown waits for a look-up says for which name.
///
/// # Errors
///
/// If the name is not known, cannot be looked up, or has no port behind it; or if the
/// runtime shuts down first.
///
/// # Panics
///
/// If it is a name and there is no runtime on this thread, or the system refuses a thread as
/// for [`spawn_blocking`](crate::task::spawn_blocking).
///
/// # Cancel safety
///
/// Nothing is lost if it is dropped, as a time-out does: the caller goes on at once. A
/// look-up that the system has begun cannot be stopped, though: it keeps its thread until it
/// ends, and its answer is thrown away. One that waits in line leaves it.
///
/// # Examples
///
/// ```
/// use blitz_io::net;
///
/// # blitz_io::run(async {
/// for addr in net::lookup_host("localhost:80").await? {
///     assert!(addr.ip().is_loopback());
/// }
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
pub async fn lookup_host<T>(host: T) -> io::Result<impl Iterator<Item = SocketAddr>>
where
    T: ToSocketAddrs,
{
    resolve(host).await
}

/// All addresses of `address`.
pub(super) fn resolve<T: ToSocketAddrs>(address: T) -> T::Answer {
    address.resolve(sealed::Inside)
}

/// The first address with which `attempt` succeeds, or the last failure.
///
/// `attempt` is no asynchronous closure: futures of those are not known to be `Send` where
/// they borrow (rust-lang/rust#102211).
pub(super) async fn first_of<T: ToSocketAddrs, R>(
    address: T,
    mut attempt: impl FnMut(SocketAddr) -> io::Result<R>,
) -> io::Result<R> {
    let mut last = None;
    for address in resolve(address).await? {
        match attempt(address) {
            Ok(done) => return Ok(done),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(error::no_address))
}

mod sealed {
    use super::{Future, SocketAddr, io};

    /// Can be named here only, so that nobody else calls or implements `resolve`.
    #[derive(Debug)]
    pub struct Inside;

    pub trait Resolve {
        type Addresses: Iterator<Item = SocketAddr> + Send + 'static;
        type Answer: Future<Output = io::Result<Self::Addresses>> + Send + 'static;

        fn resolve(&self, inside: Inside) -> Self::Answer;
    }
}

use sealed::{Inside, Resolve};

/// What needs no look-up.
type Known<I> = Ready<io::Result<I>>;

impl<T: Resolve + ?Sized> Resolve for &T {
    type Addresses = T::Addresses;
    type Answer = T::Answer;

    fn resolve(&self, inside: Inside) -> Self::Answer {
        (**self).resolve(inside)
    }
}

macro_rules! one_address {
    ($($type:ty),*) => {$(
        impl Resolve for $type {
            type Addresses = option::IntoIter<SocketAddr>;
            type Answer = Known<Self::Addresses>;

            fn resolve(&self, _: Inside) -> Self::Answer {
                ready(Ok(Some(SocketAddr::from(*self)).into_iter()))
            }
        }
    )*};
}

one_address!(
    SocketAddr,
    SocketAddrV4,
    SocketAddrV6,
    (IpAddr, u16),
    (Ipv4Addr, u16),
    (Ipv6Addr, u16)
);

impl Resolve for &[SocketAddr] {
    type Addresses = vec::IntoIter<SocketAddr>;
    type Answer = Known<Self::Addresses>;

    fn resolve(&self, _: Inside) -> Self::Answer {
        // The answer outlives the slice.
        let addresses: Vec<_> = self.to_vec();
        ready(Ok(addresses.into_iter()))
    }
}

impl Resolve for str {
    type Addresses = Addresses;
    type Answer = Lookup;

    fn resolve(&self, _: Inside) -> Lookup {
        match self.parse() {
            Ok(address) => Lookup::known(address),
            Err(_) => match host_and_port(self) {
                Ok(parts) => parts.resolve(Inside),
                Err(cause) => Lookup::failed(error::at("look up", format_args!("`{self}`"), cause)),
            },
        }
    }
}

impl Resolve for (&str, u16) {
    type Addresses = Addresses;
    type Answer = Lookup;

    fn resolve(&self, _: Inside) -> Lookup {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(ip) => Lookup::known(SocketAddr::new(ip, port)),
            Err(_) => Lookup::ask(host, port),
        }
    }
}

impl Resolve for String {
    type Addresses = Addresses;
    type Answer = Lookup;

    fn resolve(&self, inside: Inside) -> Lookup {
        self.as_str().resolve(inside)
    }
}

impl Resolve for (String, u16) {
    type Addresses = Addresses;
    type Answer = Lookup;

    fn resolve(&self, inside: Inside) -> Lookup {
        (self.0.as_str(), self.1).resolve(inside)
    }
}

/// The two sides of the last colon.
fn host_and_port(text: &str) -> io::Result<(&str, u16)> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let (host, port) = text
        .rsplit_once(':')
        .ok_or_else(|| invalid("there is no port: write it as `host:port`".to_owned()))?;
    let port = port.parse().map_err(|_| {
        invalid(format!("`{port}` is no port: write a number from 0 to 65535 after the colon"))
    })?;
    Ok((host, port))
}
