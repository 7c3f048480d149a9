//! Operations on a pipe, which the system completes later, as readiness.
//!
//! A pipe cannot be asked whether it could be read. So it is always being read, into a
//! buffer of ours, and is readable when there is something in it; and what is written is
//! copied, and the pipe is writable when the system has done with the copy. An error of a
//! write is told to the next one.
//!
//! # Protocol
//! An operation is a block: what the system writes into, and a reference to the pipe. It is
//! the system's from its start until its completion, which comes exactly once, on a thread
//! of the system's pool.
//! ```text
//! who asks                                  the completion
//! A1 looks at the record, and remembers     C1 has the block again
//! A2 locks; 'under way': would block        C2 locks, writes what came of it
//! A3 clears what A1 saw, unless there was   C3 tells the record
//!    an event since
//! ```
//! If A2 found it under way then C2 comes after it, and so does C3: either A3 sees the event
//! of C3 and clears nothing, or C3 sets again what A3 cleared, and wakes.
//!
//! The system calls happen under the lock, so C2 waits until what it began is written down.
//! Wakers are called after it was let go: what begins something answers with what is to be
//! told.
//!
//! # Invariants
//! 1. A block under way is in no other hands than the system's. The handle and the object
//!    of the pool are open as long as one is, since it refers to them.
//! 2. Of each kind at most one is under way.
//! 3. What a client before the present one has left behind reaches nobody: blocks have the
//!    number of their session.
//!
//! # Checked by
//! `tests/net_time/named_pipes.rs`, under Wine.

use std::{
    ffi::c_void,
    io,
    os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle},
    ptr,
    sync::Arc,
};

use windows_sys::Win32::{
    Foundation::{
        ERROR_BROKEN_PIPE, ERROR_IO_PENDING, ERROR_MORE_DATA, ERROR_PIPE_CONNECTED,
        ERROR_PIPE_LISTENING, ERROR_SUCCESS, GetLastError, HANDLE,
    },
    Storage::FileSystem::{ReadFile, WriteFile},
    System::{
        IO::{CancelIoEx, OVERLAPPED},
        Pipes::{ConnectNamedPipe, DisconnectNamedPipe, GetNamedPipeInfo},
        Threading::{
            CancelThreadpoolIo, CloseThreadpoolIo, CreateThreadpoolIo, PTP_CALLBACK_INSTANCE,
            PTP_IO, StartThreadpoolIo,
        },
    },
};

use super::{Driver, Registration, ready::Ready, teller::Teller};
use crate::engine::prim::{Mutex, lock};

/// Bytes of a read. A message that is longer comes in parts; picked, not measured.
const CHUNK: usize = 8 * 1024;

/// Nothing to write is still a call; more than this are several, since a length has 32 bits.
const MOST: usize = 1 << 30;

/// A pipe, registered with the runtime it was made in.
#[derive(Debug)]
pub(crate) struct Pipe {
    shared: Arc<Shared>,
    pub(crate) registration: Registration,
}

/// In the system's words.
#[derive(Debug, Default)]
pub(crate) struct Info {
    pub(crate) flags: u32,
    pub(crate) out_buffer_size: u32,
    pub(crate) in_buffer_size: u32,
    pub(crate) max_instances: u32,
}

#[derive(Debug)]
struct Shared {
    handle: OwnedHandle,
    /// The object by which the pool knows of our operations.
    completions: PTP_IO,
    teller: Teller,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    connecting: Connecting,
    reading: Reading,
    writing: Writing,
    /// Which client it is.
    session: u64,
}

#[derive(Debug)]
enum Connecting {
    Idle,
    UnderWay(Block),
    Done(io::Result<()>),
}

#[derive(Debug)]
enum Reading {
    Idle,
    UnderWay(Block),
    /// What came, and how much of it was taken.
    Here {
        bytes: Vec<u8>,
        taken: usize,
    },
    Failed(io::Error),
}

#[derive(Debug)]
enum Writing {
    Idle,
    UnderWay,
    Failed(io::Error),
}

/// The address of a block under way: by it the system finds what is to be cancelled.
#[derive(Debug, Clone, Copy)]
struct Block(usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Connect,
    Read,
    Write,
}

/// One operation. The system knows it by its first field.
#[repr(C)]
struct Operation {
    overlapped: OVERLAPPED,
    kind: Kind,
    pipe: Arc<Shared>,
    session: u64,
    bytes: Vec<u8>,
    /// How many of them are written.
    done: usize,
}

impl Pipe {
    /// Takes a pipe over, which was opened for overlapped operations, and registers it.
    pub(crate) fn new(driver: &Arc<Driver>, handle: OwnedHandle) -> io::Result<Self> {
        let (registration, teller) = driver.register_apart()?;
        // SAFETY: 1. the handle is open. 2. `completed` is such a function, and uses no
        // context. 3. No environment means the process's own pool.
        let completions = unsafe {
            CreateThreadpoolIo(raw(&handle), Some(completed), ptr::null_mut(), ptr::null())
        };
        if completions == 0 {
            return Err(io::Error::last_os_error());
        }
        let state = State {
            connecting: Connecting::Idle,
            reading: Reading::Idle,
            writing: Writing::Idle,
            session: 0,
        };
        let shared = Arc::new(Shared { handle, completions, teller, state: Mutex::new(state) });
        let told = shared.begin_reading(&mut lock(&shared.state));
        // A pipe without a client can be written as well: the error is the answer.
        registration.assume_ready(Ready::WRITABLE | told);
        Ok(Self { shared, registration })
    }

    pub(crate) fn handle(&self) -> BorrowedHandle<'_> {
        self.shared.handle.as_handle()
    }

    /// What the system knows of it.
    pub(crate) fn info(&self) -> io::Result<Info> {
        let mut info = Info::default();
        // SAFETY: 1. the handle is open. 2. The places are ours and of the right type.
        let answer = unsafe {
            GetNamedPipeInfo(
                raw(&self.shared.handle),
                &raw mut info.flags,
                &raw mut info.out_buffer_size,
                &raw mut info.in_buffer_size,
                &raw mut info.max_instances,
            )
        };
        worked(answer)?;
        Ok(info)
    }

    /// Begins to wait for a client, or says whether one has come.
    pub(crate) fn connect(&self) -> io::Result<()> {
        let mut state = lock(&self.shared.state);
        match std::mem::replace(&mut state.connecting, Connecting::Idle) {
            Connecting::Idle => match self.shared.begin_connecting() {
                Ok(Some(block)) => {
                    state.connecting = Connecting::UnderWay(block);
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(None) => {}
                Err(why) => return Err(why),
            },
            Connecting::UnderWay(block) => {
                state.connecting = Connecting::UnderWay(block);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Connecting::Done(result) => result?,
        }
        let told = self.shared.begin_reading(&mut state);
        drop(state);
        self.shared.tell(told);
        Ok(())
    }

    /// Lets the client go. Another one may connect.
    pub(crate) fn disconnect(&self) -> io::Result<()> {
        let mut state = lock(&self.shared.state);
        // SAFETY: the handle is open.
        worked(unsafe { DisconnectNamedPipe(raw(&self.shared.handle)) })?;
        state.session += 1;
        if !matches!(state.reading, Reading::UnderWay(_)) {
            state.reading = Reading::Idle;
        }
        if !matches!(state.writing, Writing::UnderWay) {
            state.writing = Writing::Idle;
        }
        Ok(())
    }

    /// Hands out what was read: `take` answers how much of it. Nothing is the end.
    pub(crate) fn read(&self, take: impl FnOnce(&[u8]) -> usize) -> io::Result<usize> {
        let mut state = lock(&self.shared.state);
        let (answer, again) = match &mut state.reading {
            Reading::UnderWay(_) => return Err(io::ErrorKind::WouldBlock.into()),
            // There was no client when it was tried last.
            Reading::Idle => (None, true),
            Reading::Here { bytes, taken } => {
                let count = take(&bytes[*taken..]);
                *taken += count;
                (Some(Ok(count)), *taken == bytes.len())
            }
            Reading::Failed(why) => {
                let why = std::mem::replace(why, io::ErrorKind::Other.into());
                (Some(if is_end(&why) { Ok(0) } else { Err(why) }), true)
            }
        };
        let told = if again { self.shared.begin_reading(&mut state) } else { Ready::EMPTY };
        if answer.is_none() && told.is_empty() && matches!(state.reading, Reading::Idle) {
            return Err(io::Error::from_raw_os_error(ERROR_PIPE_LISTENING as i32));
        }
        drop(state);
        self.shared.tell(told);
        answer.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }

    /// Takes all of `bytes` to be written, or tells the error of what was taken before.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.write_pieces(&[io::IoSlice::new(bytes)])
    }

    /// The pieces are one message.
    pub(crate) fn write_pieces(&self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let mut state = lock(&self.shared.state);
        match std::mem::replace(&mut state.writing, Writing::Idle) {
            Writing::Idle => {}
            Writing::UnderWay => {
                state.writing = Writing::UnderWay;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Writing::Failed(why) => return Err(why),
        }
        let mut bytes = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
        pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
        bytes.truncate(MOST);
        let count = bytes.len();
        let operation = self.shared.operation(Kind::Write, bytes, state.session);
        self.shared.begin_writing(operation)?;
        state.writing = Writing::UnderWay;
        Ok(count)
    }
}

impl Drop for Pipe {
    /// Nobody is left who would read. What was written goes on its way: the handle is closed
    /// after it.
    fn drop(&mut self) {
        let state = lock(&self.shared.state);
        let mut blocks = [None, None];
        if let Connecting::UnderWay(block) = state.connecting {
            blocks[0] = Some(block);
        }
        if let Reading::UnderWay(block) = state.reading {
            blocks[1] = Some(block);
        }
        for Block(address) in blocks.into_iter().flatten() {
            // SAFETY: 1. the handle is open. 2. The address is only compared with those of
            // operations under way; we have the lock, so the block is still one.
            unsafe { CancelIoEx(raw(&self.shared.handle), ptr::without_provenance(address)) };
        }
    }
}

impl Shared {
    fn operation(self: &Arc<Self>, kind: Kind, bytes: Vec<u8>, session: u64) -> Box<Operation> {
        let (overlapped, pipe) = (OVERLAPPED::default(), self.clone());
        Box::new(Operation { overlapped, kind, pipe, session, bytes, done: 0 })
    }

    fn tell(&self, ready: Ready) {
        if !ready.is_empty() {
            self.teller.tell(ready);
        }
    }

    /// `None` if a client is there already.
    fn begin_connecting(self: &Arc<Self>) -> io::Result<Option<Block>> {
        let operation = self.operation(Kind::Connect, Vec::new(), 0);
        // SAFETY: the call is one that `begin` may make: it uses the handle and the block.
        let begun = unsafe {
            self.begin(operation, |handle, block| {
                ConnectNamedPipe(handle, &raw mut (*block).overlapped)
            })
        };
        match begun {
            Ok(block) => Ok(Some(block)),
            Err((why, _)) if is(&why, ERROR_PIPE_CONNECTED) => Ok(None),
            Err((why, _)) => Err(why),
        }
    }

    /// Begins to read, unless somebody does. Answers what is to be told at once, if it failed.
    #[must_use = "the record is told after the lock was let go"]
    fn begin_reading(self: &Arc<Self>, state: &mut State) -> Ready {
        if let Reading::UnderWay(_) = state.reading {
            return Ready::EMPTY;
        }
        let operation = self.operation(Kind::Read, Vec::with_capacity(CHUNK), state.session);
        // SAFETY: as above. The memory is the block's, and need not be initialised.
        let begun = unsafe {
            self.begin(operation, |handle, block| {
                let memory = (*block).bytes.as_mut_ptr();
                let overlapped = &raw mut (*block).overlapped;
                ReadFile(handle, memory, CHUNK as u32, ptr::null_mut(), overlapped)
            })
        };
        state.reading = match begun {
            Ok(block) => Reading::UnderWay(block),
            // No client yet: `connect` begins to read.
            Err((why, _)) if is(&why, ERROR_PIPE_LISTENING) => Reading::Idle,
            Err((why, _)) => Reading::Failed(why),
        };
        match &state.reading {
            Reading::Failed(why) => readable(Some(why)),
            _ => Ready::EMPTY,
        }
    }

    /// Begins to write what is left of the block's bytes.
    fn begin_writing(&self, operation: Box<Operation>) -> io::Result<()> {
        // SAFETY: as above. The bytes from `done` on are the block's.
        let begun = unsafe {
            self.begin(operation, |handle, block| {
                let left = &(&(*block).bytes)[(*block).done..];
                let (memory, length) = (left.as_ptr(), left.len() as u32);
                let overlapped = &raw mut (*block).overlapped;
                WriteFile(handle, memory, length, ptr::null_mut(), overlapped)
            })
        };
        begun.map(|_| ()).map_err(|(why, _)| why)
    }

    /// Gives a block to the system, unless it refuses.
    ///
    /// # Safety
    /// 1. `call` begins one overlapped operation on the handle, by the block's first field,
    ///    with memory of the block's if any; and answers with what the system answered.
    unsafe fn begin(
        &self,
        operation: Box<Operation>,
        call: impl FnOnce(HANDLE, *mut Operation) -> i32,
    ) -> Result<Block, (io::Error, Box<Operation>)> {
        let block = Box::into_raw(operation);
        // SAFETY: 1. the object is open, and each start has its completion or `Cancel` below.
        unsafe { StartThreadpoolIo(self.completions) };
        let answer = call(raw(&self.handle), block);
        // SAFETY: it only reads a number of this thread's.
        let error = unsafe { GetLastError() };
        // It completes on the pool also if it did so at once. So does a message of which a
        // part was read.
        if answer != 0 || matches!(error, ERROR_IO_PENDING | ERROR_MORE_DATA) {
            return Ok(Block(block.addr()));
        }
        // SAFETY: 1. nothing was begun, so nothing completes; and the block is ours again.
        unsafe {
            CancelThreadpoolIo(self.completions);
            Err((io::Error::from_raw_os_error(error as i32), Box::from_raw(block)))
        }
    }

    /// C2, for whichever it is; answers what C3 tells.
    fn complete(
        self: &Arc<Self>,
        mut operation: Box<Operation>,
        result: io::Result<usize>,
    ) -> Ready {
        let mut state = lock(&self.state);
        let is_past = operation.session != state.session;
        match operation.kind {
            Kind::Connect => {
                state.connecting = Connecting::Done(result.map(|_| ()));
                Ready::WRITABLE
            }
            Kind::Read if is_past => {
                state.reading = Reading::Idle;
                // There may be another client by now, whom nobody reads.
                self.begin_reading(&mut state)
            }
            Kind::Read => {
                let (reading, told) = read_result(operation.bytes, result);
                state.reading = reading;
                told
            }
            Kind::Write if is_past => {
                state.writing = Writing::Idle;
                Ready::WRITABLE
            }
            Kind::Write => {
                let written = result.and_then(|count| {
                    operation.done += count;
                    let is_over = operation.done >= operation.bytes.len() || count == 0;
                    if is_over { Ok(true) } else { self.begin_writing(operation).map(|()| false) }
                });
                let (writing, told) = match written {
                    Ok(false) => return Ready::EMPTY,
                    Ok(true) => (Writing::Idle, Ready::WRITABLE),
                    Err(why) => (Writing::Failed(why), Ready::WRITABLE | Ready::WRITE_CLOSED),
                };
                state.writing = writing;
                told
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: no operation is under way, since each refers to us. Were this the thread
        // of a completion, the pool would free the object after it.
        unsafe { CloseThreadpoolIo(self.completions) };
    }
}

/// C1 to C3.
///
/// # Safety
/// 1. `overlapped` is the first field of a block that `begin` gave away, and this is its only
///    completion.
unsafe extern "system" fn completed(
    _instance: PTP_CALLBACK_INSTANCE,
    _context: *mut c_void,
    overlapped: *mut c_void,
    error: u32,
    count: usize,
    _completions: PTP_IO,
) {
    // SAFETY: 1., and `repr(C)` puts the first field at the block's address.
    let mut operation = unsafe { Box::from_raw(overlapped.cast::<Operation>()) };
    let result = match error {
        ERROR_SUCCESS | ERROR_MORE_DATA => Ok(count),
        error => Err(io::Error::from_raw_os_error(error as i32)),
    };
    if let (Kind::Read, Ok(count)) = (operation.kind, &result) {
        // SAFETY: the system has written so many, and was told of the capacity.
        unsafe { operation.bytes.set_len((*count).min(CHUNK)) };
    }
    let pipe = operation.pipe.clone();
    let told = pipe.complete(operation, result);
    pipe.tell(told);
}

fn read_result(bytes: Vec<u8>, result: io::Result<usize>) -> (Reading, Ready) {
    match result {
        Ok(_) => (Reading::Here { bytes, taken: 0 }, readable(None)),
        Err(why) => {
            let told = readable(Some(&why));
            (Reading::Failed(why), told)
        }
    }
}

/// What is told of a read that ended.
fn readable(why: Option<&io::Error>) -> Ready {
    if why.is_some_and(is_end) { Ready::READABLE | Ready::READ_CLOSED } else { Ready::READABLE }
}

/// The other end is closed, which is the end of what can be read.
fn is_end(why: &io::Error) -> bool {
    is(why, ERROR_BROKEN_PIPE)
}

fn is(why: &io::Error, number: u32) -> bool {
    why.raw_os_error() == Some(number as i32)
}

/// What Windows means by a number.
pub(crate) fn worked(answer: i32) -> io::Result<()> {
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn raw(handle: &OwnedHandle) -> HANDLE {
    handle.as_raw_handle()
}
