//! Resolves names and other forms of addresses to `SocketAddr`s.
//!
//! Values that are addresses already resolve immediately, and text that cannot be an address
//! fails immediately. Names are looked up by the system: see `lookup`.

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

/// Types that name one or more socket addresses, directly or by a host name to be looked up.
///
/// The operations of this module accept these types as addresses:
///
/// - [`SocketAddr`], [`SocketAddrV4`], [`SocketAddrV6`];
/// - an [`IpAddr`], [`Ipv4Addr`] or [`Ipv6Addr`] with a port;
/// - a slice of `SocketAddr`;
/// - a `str` or `String` of the form `host:port`, or a host with a port. If the host is
///   a name, it is looked up.
///
/// This trait cannot be implemented outside of this crate. To look up a name without using it,
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

/// Implements [`ToSocketAddrs`] for each type separately, so that the documentation lists them:
/// users look there for what they can pass.
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
/// The result may contain no address or several, in the order in which the system returns them. A
/// value that is an address already is returned as it is, without a look-up.
///
/// Names are resolved by the system (`getaddrinfo`) on a blocking thread. A look-up may block
/// that thread for any length of time, so at most a quarter of
/// [`max_blocking_threads`](crate::runtime::Builder::max_blocking_threads), and at least one
/// thread, runs look-ups. Further look-ups wait in a queue (FIFO), and the remaining threads stay
/// free for other work. If the shutdown of a runtime waits for a look-up, it reports the name.
///
/// # Errors
///
/// Fails if the name is unknown, cannot be looked up, or has no port after it; or if the runtime
/// shuts down first.
///
/// # Panics
///
/// Panics if a name has to be looked up and there is no runtime on this thread, or the system
/// refuses a thread in a case in which [`spawn_blocking`](crate::task::spawn_blocking) panics.
///
/// # Cancel safety
///
/// Nothing is lost if the future is dropped, for instance by a timeout: the caller continues
/// immediately. A look-up that the system has begun cannot be stopped, though: it occupies its
/// thread until it ends, and its result is discarded. A look-up that still waits in the queue
/// leaves it.
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

/// Resolves `address` to all of its addresses.
pub(super) fn resolve<T: ToSocketAddrs>(address: T) -> T::Future {
    address.resolve(sealed::Internal)
}

/// Calls `attempt` with each address in turn, and returns its first success or the last failure.
///
/// `attempt` is a synchronous closure, because the futures of asynchronous closures are not known
/// to be `Send` where they borrow (rust-lang/rust#102211).
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

    /// Argument that only this module can name, so that no other code calls or implements
    /// `resolve`.
    #[derive(Debug)]
    pub struct Internal;

    pub trait Resolve {
        type Addresses: Iterator<Item = SocketAddr> + Send + 'static;
        type Future: Future<Output = io::Result<Self::Addresses>> + Send + 'static;

        fn resolve(&self, internal: Internal) -> Self::Future;
    }
}

use sealed::{Internal, Resolve};

/// Future of addresses that need no look-up.
type ReadyAddresses<I> = Ready<io::Result<I>>;

impl<T: Resolve + ?Sized> Resolve for &T {
    type Addresses = T::Addresses;
    type Future = T::Future;

    fn resolve(&self, internal: Internal) -> Self::Future {
        (**self).resolve(internal)
    }
}

macro_rules! one_address {
    ($($type:ty),*) => {$(
        impl Resolve for $type {
            type Addresses = option::IntoIter<SocketAddr>;
            type Future = ReadyAddresses<Self::Addresses>;

            fn resolve(&self, _: Internal) -> Self::Future {
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
    type Future = ReadyAddresses<Self::Addresses>;

    fn resolve(&self, _: Internal) -> Self::Future {
        // The future outlives the slice, so it needs a copy.
        let addresses: Vec<_> = self.to_vec();
        ready(Ok(addresses.into_iter()))
    }
}

impl Resolve for str {
    type Addresses = Addresses;
    type Future = Lookup;

    fn resolve(&self, _: Internal) -> Lookup {
        match self.parse() {
            Ok(address) => Lookup::resolved(address),
            Err(_) => match host_and_port(self) {
                Ok(parts) => parts.resolve(Internal),
                Err(cause) => Lookup::failed(error::lookup_failed(format_args!("`{self}`"), cause)),
            },
        }
    }
}

impl Resolve for (&str, u16) {
    type Addresses = Addresses;
    type Future = Lookup;

    fn resolve(&self, _: Internal) -> Lookup {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(ip) => Lookup::resolved(SocketAddr::new(ip, port)),
            Err(_) => Lookup::start(host, port),
        }
    }
}

impl Resolve for String {
    type Addresses = Addresses;
    type Future = Lookup;

    fn resolve(&self, internal: Internal) -> Lookup {
        self.as_str().resolve(internal)
    }
}

impl Resolve for (String, u16) {
    type Addresses = Addresses;
    type Future = Lookup;

    fn resolve(&self, internal: Internal) -> Lookup {
        (self.0.as_str(), self.1).resolve(internal)
    }
}

/// Splits `host:port` at the last colon.
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
