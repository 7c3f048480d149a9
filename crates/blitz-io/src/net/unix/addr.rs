//! Addresses of Unix sockets.

#![forbid(unsafe_code)]

#[cfg(target_os = "android")]
use std::os::android::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::{
    fmt, io,
    os::unix::{ffi::OsStrExt, net},
    path::Path,
};

use socket2::SockAddr;

/// An address associated with a Unix socket: a path, a name without a file (on Linux), or
/// nothing.
///
/// # Examples
///
/// ```
/// use blitz_io::net::unix::SocketAddr;
///
/// let addr = SocketAddr::from(std::os::unix::net::SocketAddr::from_pathname("/tmp/socket")?);
/// assert_eq!(addr.as_pathname(), Some("/tmp/socket".as_ref()));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct SocketAddr(pub(super) net::SocketAddr);

impl SocketAddr {
    /// Whether it is no name at all, as that of a socket that was not bound.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// assert!(stream.local_addr()?.is_unnamed());
    /// # drop(peer);
    #[doc = example_end!()]
    pub fn is_unnamed(&self) -> bool {
        self.0.is_unnamed()
    }

    /// The path, if it is one.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("UnixListener"))]
    /// let path = dir.join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
    #[doc = example_end!()]
    pub fn as_pathname(&self) -> Option<&Path> {
        self.0.as_pathname()
    }

    /// The name in the abstract namespace, without the zero byte before it, if it is one.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::UnixListener;
    ///
    /// # blitz_io::run(async {
    /// let name = format!("\0blitz-example-{}", std::process::id());
    /// let listener = UnixListener::bind(&name)?;
    /// assert_eq!(listener.local_addr()?.as_abstract_name(), Some(&name.as_bytes()[1..]));
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn as_abstract_name(&self) -> Option<&[u8]> {
        self.0.as_abstract_name()
    }

    /// The kernel's form, as an address that the standard library can have. The kernel
    /// gives nothing at all for who has no name.
    pub(in crate::net) fn from_raw(raw: &SockAddr) -> io::Result<SocketAddr> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = raw.as_abstract_namespace() {
            return net::SocketAddr::from_abstract_name(name).map(SocketAddr);
        }
        let path = raw.as_pathname().unwrap_or(Path::new(""));
        net::SocketAddr::from_pathname(path).map(SocketAddr)
    }

    /// The form that the kernel takes.
    pub(super) fn to_raw(&self) -> io::Result<SockAddr> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = self.as_abstract_name() {
            return raw(std::ffi::OsStr::from_bytes(&[b"\0", name].concat()).as_ref());
        }
        raw(self.as_pathname().unwrap_or(Path::new("")))
    }
}

/// The kernel's form of a path. On Linux, one that begins with a zero byte is a name in
/// the abstract namespace; a zero byte anywhere else would cut the path short.
pub(super) fn raw(path: &Path) -> io::Result<SockAddr> {
    let bytes = path.as_os_str().as_bytes();
    let named = cfg!(any(target_os = "linux", target_os = "android")) && bytes.starts_with(b"\0");
    if !named && bytes.contains(&0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "paths must not contain interior null bytes: take them out",
        ));
    }
    SockAddr::unix(path)
}

impl fmt::Debug for SocketAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<net::SocketAddr> for SocketAddr {
    fn from(address: net::SocketAddr) -> Self {
        SocketAddr(address)
    }
}

impl From<SocketAddr> for net::SocketAddr {
    fn from(address: SocketAddr) -> Self {
        address.0
    }
}

/// A path in the text of an error, with a zero byte made visible.
pub(super) fn shown(path: &Path) -> impl fmt::Display {
    fmt::from_fn({
        let path = path.to_owned();
        move |f| write!(f, "{path:?}")
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{SocketAddr, raw};

    #[test]
    fn an_address_comes_back_from_the_kernels_form() {
        for path in ["/tmp/a path", "", "relative"] {
            let there = SocketAddr::from_raw(&raw(Path::new(path)).unwrap()).unwrap();
            assert_eq!(there.as_pathname().map_or("", |path| path.to_str().unwrap()), path);
            assert_eq!(there.is_unnamed(), path.is_empty());
            let back = SocketAddr::from_raw(&there.to_raw().unwrap()).unwrap();
            assert_eq!(back.as_pathname(), there.as_pathname());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_abstract_name_comes_back_with_all_its_bytes() {
        let there = SocketAddr::from_raw(&raw(Path::new("\0a\0b")).unwrap()).unwrap();
        assert_eq!(there.as_abstract_name(), Some(&b"a\0b"[..]));
        let back = SocketAddr::from_raw(&there.to_raw().unwrap()).unwrap();
        assert_eq!(back.as_abstract_name(), Some(&b"a\0b"[..]));
    }

    #[test]
    fn a_path_that_the_kernel_cannot_have_is_refused() {
        for path in ["a\0b".to_owned(), "x".repeat(108), "x".repeat(4096)] {
            let error = raw(Path::new(&path)).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        }
    }
}
