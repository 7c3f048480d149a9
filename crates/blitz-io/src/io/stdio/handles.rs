//! Access to the system's handles of the standard streams, through the handles of std.

/// Implements `AsFd` and `AsRawFd`, or `AsHandle` and `AsRawHandle`, for a type with a
/// field `std`.
macro_rules! handles {
    ($name:ident) => {
        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $name {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                self.std.as_raw_fd()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsFd for $name {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.std.as_fd()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawHandle for $name {
            fn as_raw_handle(&self) -> std::os::windows::io::RawHandle {
                self.std.as_raw_handle()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsHandle for $name {
            fn as_handle(&self) -> std::os::windows::io::BorrowedHandle<'_> {
                self.std.as_handle()
            }
        }
    };
}
pub(super) use handles;
