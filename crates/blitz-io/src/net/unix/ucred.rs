//! Who is at the other end of a Unix socket.

#![forbid(unsafe_code)]

use super::{gid_t, pid_t, stream::UnixStream, uid_t};
use crate::net::raw;

/// Credentials of a process.
///
/// They are those of the moment at which it connected (or made the pair): it may have
/// changed them since, or be gone and its number another's.
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
    /// Its user.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// assert_eq!(stream.peer_cred()?.uid(), peer.peer_cred()?.uid());
    #[doc = example_end!()]
    pub fn uid(&self) -> uid_t {
        self.uid
    }

    /// Its group.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// assert_eq!(stream.peer_cred()?.gid(), peer.peer_cred()?.gid());
    #[doc = example_end!()]
    pub fn gid(&self) -> gid_t {
        self.gid
    }

    /// Its number, where the system tells it: on Linux and Android.
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
