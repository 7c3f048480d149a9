//! Addresses of Unix sockets.

#![forbid(unsafe_code)]

#[cfg(target_os = "android")]
use std::os::android::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::unix::ffi::OsStrExt;
use std::{
    fmt, io,
    os::unix::net,
    path::{Path, PathBuf},
};

use socket2::SockAddr;

/// Address of a Unix socket: a path, a name without a file (on Linux), or nothing.
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
pub struct SocketAddr(Inner);

#[derive(Clone)]
enum Inner {
    Std(net::SocketAddr),
    /// Path that fills `sun_path`, so that no zero byte ends it. The kernel accepts such a path
    /// for a peer, and the standard library's type cannot hold it.
    Long(PathBuf),
}

impl SocketAddr {
    /// Returns whether the address is empty, as that of a socket that was not bound.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// assert!(stream.local_addr()?.is_unnamed());
    /// # drop(peer);
    #[doc = example_end!()]
    pub fn is_unnamed(&self) -> bool {
        match &self.0 {
            Inner::Std(address) => address.is_unnamed(),
            Inner::Long(_) => false,
        }
    }

    /// Returns the path, if the address is a path.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("UnixListener"))]
    /// let path = dir.join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
    #[doc = example_end!()]
    pub fn as_pathname(&self) -> Option<&Path> {
        match &self.0 {
            Inner::Std(address) => address.as_pathname(),
            Inner::Long(path) => Some(path),
        }
    }

    /// Returns the name in the abstract namespace, without the zero byte before it, if the
    /// address is such a name.
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
        match &self.0 {
            Inner::Std(address) => address.as_abstract_name(),
            Inner::Long(_) => None,
        }
    }

    /// Returns the address that the kernel reported for a peer. This cannot fail, because the
    /// message or connection of that peer has been taken from the kernel already.
    pub(in crate::net) fn from_raw(raw: &SockAddr) -> SocketAddr {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = raw.as_abstract_namespace()
            && let Ok(address) = net::SocketAddr::from_abstract_name(name)
        {
            return address.into();
        }
        // The kernel reports no path at all for a socket without a name.
        let path = raw.as_pathname().unwrap_or(Path::new(""));
        match net::SocketAddr::from_pathname(path) {
            Ok(address) => address.into(),
            Err(_) => SocketAddr(Inner::Long(path.to_owned())),
        }
    }

    /// Returns the form of the address that the kernel takes.
    pub(super) fn to_raw(&self) -> io::Result<SockAddr> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name @ [_, ..]) = self.as_abstract_name() {
            return SockAddr::unix(std::ffi::OsStr::from_bytes(&[b"\0", name].concat()));
        }
        // The only path that is refused here is one that leaves no room for a zero byte. The
        // kernel refuses it with this number, which is what Tokio returns.
        SockAddr::unix(self.as_pathname().unwrap_or(Path::new("")))
            .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
    }
}

/// Returns the kernel's form of a path without zero bytes. The checks and their errors are the
/// standard library's, as on Tokio.
pub(super) fn of_path(path: &Path) -> io::Result<SockAddr> {
    net::SocketAddr::from_pathname(path)?;
    SockAddr::unix(path)
}

/// Returns the kernel's form of a path, or on Linux, if it begins with a zero byte, of a name
/// in the abstract namespace. A zero byte alone is no name: the kernel chooses one for a
/// listener, and refuses to connect, as on Tokio.
pub(super) fn of_path_or_name(path: &Path) -> io::Result<SockAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(name) = path.as_os_str().as_bytes().strip_prefix(b"\0") {
        return SocketAddr::from(net::SocketAddr::from_abstract_name(name)?).to_raw();
    }
    of_path(path)
}

/// Returns the kernel's form of any path: one that begins with a zero byte is a name in the
/// abstract namespace, and the kernel cuts any other at its first zero byte. Tokio's `UnixSocket`
/// does the same.
pub(super) fn of_bytes(path: &Path) -> io::Result<SockAddr> {
    SockAddr::unix(path)
}

impl fmt::Debug for SocketAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Std(address) => address.fmt(f),
            Inner::Long(path) => write!(f, "{path:?} (pathname)"),
        }
    }
}

impl From<net::SocketAddr> for SocketAddr {
    fn from(address: net::SocketAddr) -> Self {
        SocketAddr(Inner::Std(address))
    }
}

/// A peer's path that leaves no room for a zero byte (108 bytes on Linux) becomes an unnamed
/// address, because the standard library cannot be given such a path.
impl From<SocketAddr> for net::SocketAddr {
    fn from(address: SocketAddr) -> Self {
        match address.0 {
            Inner::Std(address) => address,
            Inner::Long(_) => {
                net::SocketAddr::from_pathname("").expect("an empty path is an unnamed address")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{SocketAddr, of_path, of_path_or_name};

    #[test]
    fn an_address_comes_back_from_the_kernels_form() {
        for path in ["/tmp/a path", "", "relative"] {
            let there = SocketAddr::from_raw(&of_path(Path::new(path)).unwrap());
            assert_eq!(there.as_pathname().map_or("", |path| path.to_str().unwrap()), path);
            assert_eq!(there.is_unnamed(), path.is_empty());
            let back = SocketAddr::from_raw(&there.to_raw().unwrap());
            assert_eq!(back.as_pathname(), there.as_pathname());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_abstract_name_comes_back_with_all_its_bytes() {
        for name in ["\0a\0b", "\0\0b"] {
            let there = SocketAddr::from_raw(&of_path_or_name(Path::new(name)).unwrap());
            assert_eq!(there.as_abstract_name(), Some(&name.as_bytes()[1..]));
            let back = SocketAddr::from_raw(&there.to_raw().unwrap());
            assert_eq!(back.as_abstract_name(), there.as_abstract_name());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_zero_byte_alone_is_no_name() {
        let raw = of_path_or_name(Path::new("\0")).unwrap();
        assert!(SocketAddr::from_raw(&raw).is_unnamed());
    }

    #[test]
    fn a_path_that_the_kernel_cannot_have_is_refused() {
        for path in ["a\0b".to_owned(), "x".repeat(108), "x".repeat(4096)] {
            for of in [of_path, of_path_or_name] {
                let error = of(Path::new(&path)).unwrap_err();
                assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
            }
        }
        assert!(of_path(Path::new("\0a")).is_err());
    }
}
