//! Credentials of the process at the other end of a Unix socket.

#![forbid(unsafe_code)]

use super::{gid_t, pid_t, stream::UnixStream, uid_t};
use crate::net::raw;

/// User, group and process ID of the process at the other end of a Unix socket.
///
/// They are those of the time at which the process connected (or created the pair). Since then
/// the process may have changed them, or it may have ended and its process ID belong to another
/// process.
///
/// # Examples
///
#[doc = concat!("```\n", unix_pair!("stream"))]
/// let cred = stream.peer_cred()?;
/// println!("user {}, group {}", cred.uid(), cred.gid());
/// # drop(peer);
#[doc = example_end!()]
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub struct UCred {
    pid: Option<pid_t>,
    uid: uid_t,
    gid: gid_t,
}

impl UCred {
    /// Returns the user ID of the process.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// assert_eq!(stream.peer_cred()?.uid(), peer.peer_cred()?.uid());
    #[doc = example_end!()]
    pub fn uid(&self) -> uid_t {
        self.uid
    }

    /// Returns the group ID of the process.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// assert_eq!(stream.peer_cred()?.gid(), peer.peer_cred()?.gid());
    #[doc = example_end!()]
    pub fn gid(&self) -> gid_t {
        self.gid
    }

    /// Returns the process ID where the system reports it: on Linux and Android.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// if let Some(pid) = stream.peer_cred()?.pid() {
    ///     assert_eq!(pid as u32, std::process::id());
    /// }
    /// # drop(peer);
    #[doc = example_end!()]
    pub fn pid(&self) -> Option<pid_t> {
        self.pid
    }

    pub(super) fn of_peer(stream: &UnixStream) -> std::io::Result<UCred> {
        let (pid, uid, gid) = raw::peer_credentials(std::os::fd::AsFd::as_fd(stream))?;
        Ok(UCred { pid, uid, gid })
    }
}
