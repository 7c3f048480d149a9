//! Presents overlapped operations on a named pipe, which the system completes later, as readiness.
//!
//! The system cannot report whether a pipe is readable. So a read into an internal buffer is always
//! under way, and the pipe is readable when the buffer has data. Written bytes are copied, and the
//! pipe is writable when the system has written the copy. The error of a write is returned by the
//! next write.
//!
//! # Protocol
//! An operation is a block: the memory that the system uses, and a reference to the pipe. The
//! system owns it from its start until its completion, which comes exactly once, on a thread of the
//! system's pool.
//! ```text
//! the caller                                the completion
//! A1 takes a snapshot of the record         C1 owns the block again
//! A2 locks; if under way: would block       C2 locks, writes the result
//! A3 clears the bits of A1, unless there    C3 notifies the record
//!    was an event since
//! ```
//! If A2 found the operation under way then C2 comes after it, and so does C3: either A3 sees the
//! event of C3 and clears nothing, or C3 sets again what A3 cleared, and wakes.
//!
//! The system calls are made under the lock, so C2 waits until the operation's start has been
//! recorded. Wakers are called after the lock is released: a function that starts an operation
//! returns the readiness that its caller must report.
//!
//! # Invariants
//! 1. Only the system has access to a block that is under way. The handle and the pool object stay
//!    open as long as one is, because the block refers to them.
//! 2. At most one operation of each kind is under way.
//! 3. What an earlier client left behind is not delivered to the next one: blocks carry the number
//!    of their session.
//!
//! # Checked by
//! `tests/it/net/named_pipe.rs`, under Wine.

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

use super::{Driver, Registration, event_reporter::EventReporter, ready::Ready};
use crate::engine::prim::{Mutex, lock};

/// The number of bytes of one read. A longer message comes in parts; picked, not measured.
const CHUNK: usize = 8 * 1024;

/// The maximum number of bytes of one write, because a length has 32 bits; more take several
/// writes. An empty write is still a system call.
const MOST: usize = 1 << 30;

/// A named pipe, registered with the driver of its runtime.
#[derive(Debug)]
pub(crate) struct OverlappedPipe {
    shared: Arc<Shared>,
    pub(crate) registration: Registration,
}

/// The properties of a pipe, as the system reports them.
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
    /// The object through which the thread pool delivers our completions.
    completions: PTP_IO,
    reporter: EventReporter,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    connecting: ConnectState,
    reading: ReadState,
    writing: WriteState,
    /// The number of the current client, by which leftovers of earlier clients are recognised.
    session: u64,
}

#[derive(Debug)]
enum ConnectState {
    Idle,
    UnderWay(Block),
    Done(io::Result<()>),
}

#[derive(Debug)]
enum ReadState {
    Idle,
    UnderWay(Block),
    /// The bytes that were read, and how many of them have been taken.
    Buffered {
        bytes: Vec<u8>,
        taken: usize,
    },
    Failed(io::Error),
}

#[derive(Debug)]
enum WriteState {
    Idle,
    UnderWay,
    Failed(io::Error),
}

/// The address of a block under way, by which the system finds the operation to cancel.
#[derive(Debug, Clone, Copy)]
struct Block(usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperationKind {
    Connect,
    Read,
    Write,
}

/// One overlapped operation. The system knows it by the address of its first field.
#[repr(C)]
struct Operation {
    overlapped: OVERLAPPED,
    kind: OperationKind,
    pipe: Arc<Shared>,
    session: u64,
    bytes: Vec<u8>,
    /// The number of bytes that have been written so far.
    done: usize,
}

impl OverlappedPipe {
    /// Takes ownership of a pipe that was opened for overlapped operations, and registers it.
    pub(crate) fn new(driver: &Arc<Driver>, handle: OwnedHandle) -> io::Result<Self> {
        let (registration, reporter) = driver.register_external()?;
        // SAFETY: 1. the handle is open. 2. `completed` has the required signature, and uses no
        // context. 3. A null environment means the process's default pool.
        let completions = unsafe {
            CreateThreadpoolIo(raw(&handle), Some(completed), ptr::null_mut(), ptr::null())
        };
        if completions == 0 {
            return Err(io::Error::last_os_error());
        }
        let state = State {
            connecting: ConnectState::Idle,
            reading: ReadState::Idle,
            writing: WriteState::Idle,
            session: 0,
        };
        let shared = Arc::new(Shared { handle, completions, reporter, state: Mutex::new(state) });
        let ready = shared.begin_reading(&mut lock(&shared.state));
        // A pipe without a client is writable too: the write then returns the error.
        registration.assume_ready(Ready::WRITABLE | ready);
        Ok(Self { shared, registration })
    }

    pub(crate) fn handle(&self) -> BorrowedHandle<'_> {
        self.shared.handle.as_handle()
    }

    /// Returns the pipe's properties from the system.
    pub(crate) fn info(&self) -> io::Result<Info> {
        let mut info = Info::default();
        // SAFETY: 1. the handle is open. 2. The pointers are to fields of a local, of the right
        // type.
        let result = unsafe {
            GetNamedPipeInfo(
                raw(&self.shared.handle),
                &raw mut info.flags,
                &raw mut info.out_buffer_size,
                &raw mut info.in_buffer_size,
                &raw mut info.max_instances,
            )
        };
        worked(result)?;
        Ok(info)
    }

    /// Starts to wait for a client, or returns the outcome of such a wait; `WouldBlock` while under
    /// way.
    pub(crate) fn connect(&self) -> io::Result<()> {
        let mut state = lock(&self.shared.state);
        match std::mem::replace(&mut state.connecting, ConnectState::Idle) {
            ConnectState::Idle => match self.shared.begin_connecting() {
                Ok(Some(block)) => {
                    state.connecting = ConnectState::UnderWay(block);
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(None) => {}
                Err(why) => return Err(why),
            },
            ConnectState::UnderWay(block) => {
                state.connecting = ConnectState::UnderWay(block);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            ConnectState::Done(result) => result?,
        }
        let ready = self.shared.begin_reading(&mut state);
        drop(state);
        self.shared.report(ready);
        Ok(())
    }

    /// Disconnects the client, after which another one may connect.
    pub(crate) fn disconnect(&self) -> io::Result<()> {
        let mut state = lock(&self.shared.state);
        // SAFETY: the handle is open for as long as `self.shared` lives.
        worked(unsafe { DisconnectNamedPipe(raw(&self.shared.handle)) })?;
        state.session += 1;
        if !matches!(state.reading, ReadState::UnderWay(_)) {
            state.reading = ReadState::Idle;
        }
        if !matches!(state.writing, WriteState::UnderWay) {
            state.writing = WriteState::Idle;
        }
        Ok(())
    }

    /// Passes the bytes that were read to `take`, which returns how many it took. Zero is the end.
    pub(crate) fn read(&self, take: impl FnOnce(&[u8]) -> usize) -> io::Result<usize> {
        let mut state = lock(&self.shared.state);
        let (result, again) = match &mut state.reading {
            ReadState::UnderWay(_) => return Err(io::ErrorKind::WouldBlock.into()),
            // There was no client at the last attempt.
            ReadState::Idle => (None, true),
            ReadState::Buffered { bytes, taken } => {
                let count = take(&bytes[*taken..]);
                *taken += count;
                (Some(Ok(count)), *taken == bytes.len())
            }
            ReadState::Failed(why) => {
                let why = std::mem::replace(why, io::ErrorKind::Other.into());
                (Some(if is_end(&why) { Ok(0) } else { Err(why) }), true)
            }
        };
        let ready = if again { self.shared.begin_reading(&mut state) } else { Ready::EMPTY };
        if result.is_none() && ready.is_empty() && matches!(state.reading, ReadState::Idle) {
            return Err(io::Error::from_raw_os_error(ERROR_PIPE_LISTENING as i32));
        }
        drop(state);
        self.shared.report(ready);
        result.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }

    /// Accepts `bytes` for writing, or returns the error of the previous write.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.write_pieces(&[io::IoSlice::new(bytes)])
    }

    /// Writes the slices as one message.
    pub(crate) fn write_pieces(&self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let mut state = lock(&self.shared.state);
        match std::mem::replace(&mut state.writing, WriteState::Idle) {
            WriteState::Idle => {}
            WriteState::UnderWay => {
                state.writing = WriteState::UnderWay;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            WriteState::Failed(why) => return Err(why),
        }
        let mut bytes = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
        pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
        bytes.truncate(MOST);
        let count = bytes.len();
        let operation = self.shared.operation(OperationKind::Write, bytes, state.session);
        self.shared.begin_writing(operation)?;
        state.writing = WriteState::UnderWay;
        Ok(count)
    }
}

impl Drop for OverlappedPipe {
    /// Cancels the read and the connect, because the pipe has no reader any more. A write still
    /// goes through: the handle is closed after it.
    fn drop(&mut self) {
        let state = lock(&self.shared.state);
        let mut blocks = [None, None];
        if let ConnectState::UnderWay(block) = state.connecting {
            blocks[0] = Some(block);
        }
        if let ReadState::UnderWay(block) = state.reading {
            blocks[1] = Some(block);
        }
        for Block(address) in blocks.into_iter().flatten() {
            // SAFETY: 1. the handle is open. 2. The address is only compared with those of
            // operations under way; we hold the lock, so this block is still one of them.
            unsafe { CancelIoEx(raw(&self.shared.handle), ptr::without_provenance(address)) };
        }
    }
}

impl Shared {
    fn operation(
        self: &Arc<Self>,
        kind: OperationKind,
        bytes: Vec<u8>,
        session: u64,
    ) -> Box<Operation> {
        let (overlapped, pipe) = (OVERLAPPED::default(), self.clone());
        Box::new(Operation { overlapped, kind, pipe, session, bytes, done: 0 })
    }

    fn report(&self, ready: Ready) {
        if !ready.is_empty() {
            self.reporter.report(ready);
        }
    }

    /// Starts to wait for a client; returns `None` if one is connected already.
    fn begin_connecting(self: &Arc<Self>) -> io::Result<Option<Block>> {
        let operation = self.operation(OperationKind::Connect, Vec::new(), 0);
        // SAFETY: 1. the call starts one operation on the handle, with the block's first field,
        // uses no other memory, and returns the system's result.
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

    /// Starts a read, unless one is under way. If it fails at once, returns the readiness to
    /// report.
    #[must_use = "the readiness is reported after the lock is released"]
    fn begin_reading(self: &Arc<Self>, state: &mut State) -> Ready {
        if let ReadState::UnderWay(_) = state.reading {
            return Ready::EMPTY;
        }
        let operation =
            self.operation(OperationKind::Read, Vec::with_capacity(CHUNK), state.session);
        // SAFETY: 1. the call starts one operation on the handle, with the block's first field, and
        // returns the system's result; the memory is the block's, and need not be initialised.
        let begun = unsafe {
            self.begin(operation, |handle, block| {
                let memory = (*block).bytes.as_mut_ptr();
                let overlapped = &raw mut (*block).overlapped;
                ReadFile(handle, memory, CHUNK as u32, ptr::null_mut(), overlapped)
            })
        };
        state.reading = match begun {
            Ok(block) => ReadState::UnderWay(block),
            // There is no client yet; `connect` starts the read.
            Err((why, _)) if is(&why, ERROR_PIPE_LISTENING) => ReadState::Idle,
            Err((why, _)) => ReadState::Failed(why),
        };
        match &state.reading {
            ReadState::Failed(why) => readable(Some(why)),
            _ => Ready::EMPTY,
        }
    }

    /// Starts a write of the block's remaining bytes.
    fn begin_writing(&self, operation: Box<Operation>) -> io::Result<()> {
        // SAFETY: 1. the call starts one operation on the handle, with the block's first field, and
        // returns the system's result; the bytes from `done` on are the block's.
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

    /// Hands a block over to the system; returns it with the error if the system refuses.
    ///
    /// # Safety
    /// 1. `call` starts one overlapped operation on the handle, with the block's first field and
    ///    only memory of the block, and returns the system's result.
    unsafe fn begin(
        &self,
        operation: Box<Operation>,
        call: impl FnOnce(HANDLE, *mut Operation) -> i32,
    ) -> Result<Block, (io::Error, Box<Operation>)> {
        let block = Box::into_raw(operation);
        // SAFETY: the pool object is open, and each start is matched by a completion or by the
        // `Cancel` below.
        unsafe { StartThreadpoolIo(self.completions) };
        let result = call(raw(&self.handle), block);
        // SAFETY: the call only reads the error number of this thread.
        let error = unsafe { GetLastError() };
        // The completion comes through the pool even if the operation finished at once, and also if
        // only a part of a message was read.
        if result != 0 || matches!(error, ERROR_IO_PENDING | ERROR_MORE_DATA) {
            return Ok(Block(block.addr()));
        }
        // SAFETY: the operation was not started, so no completion comes, which `Cancel` requires;
        // and the block, which `Box::into_raw` above gave up, is ours again.
        unsafe {
            CancelThreadpoolIo(self.completions);
            Err((io::Error::from_raw_os_error(error as i32), Box::from_raw(block)))
        }
    }

    /// Records the result of a completed operation of any kind, and returns the readiness to report
    /// (C2 and C3).
    fn complete(
        self: &Arc<Self>,
        mut operation: Box<Operation>,
        result: io::Result<usize>,
    ) -> Ready {
        let mut state = lock(&self.state);
        let is_past = operation.session != state.session;
        match operation.kind {
            OperationKind::Connect => {
                state.connecting = ConnectState::Done(result.map(|_| ()));
                Ready::WRITABLE
            }
            OperationKind::Read if is_past => {
                state.reading = ReadState::Idle;
                // There may be another client by now, and no read is under way for it.
                self.begin_reading(&mut state)
            }
            OperationKind::Read => {
                let (reading, ready) = read_result(operation.bytes, result);
                state.reading = reading;
                ready
            }
            OperationKind::Write if is_past => {
                state.writing = WriteState::Idle;
                Ready::WRITABLE
            }
            OperationKind::Write => {
                let written = result.and_then(|count| {
                    operation.done += count;
                    let is_over = operation.done >= operation.bytes.len() || count == 0;
                    if is_over { Ok(true) } else { self.begin_writing(operation).map(|()| false) }
                });
                let (writing, ready) = match written {
                    Ok(false) => return Ready::EMPTY,
                    Ok(true) => (WriteState::Idle, Ready::WRITABLE),
                    Err(why) => (WriteState::Failed(why), Ready::WRITABLE | Ready::WRITE_CLOSED),
                };
                state.writing = writing;
                ready
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: no operation is under way, because each holds a reference to `self`. If this is
        // the thread of a completion, the pool frees the object after the callback.
        unsafe { CloseThreadpoolIo(self.completions) };
    }
}

/// The thread pool's callback for a completed operation (C1 to C3).
///
/// # Safety
/// 1. `overlapped` is the first field of a block that `begin` handed over, and this is its only
///    completion.
unsafe extern "system" fn completed(
    _instance: PTP_CALLBACK_INSTANCE,
    _context: *mut c_void,
    overlapped: *mut c_void,
    error: u32,
    count: usize,
    _completions: PTP_IO,
) {
    // SAFETY: by obligation 1 the block came from `Box::into_raw` and is returned once; `repr(C)`
    // puts the first field at the block's address.
    let mut operation = unsafe { Box::from_raw(overlapped.cast::<Operation>()) };
    let result = match error {
        ERROR_SUCCESS | ERROR_MORE_DATA => Ok(count),
        error => Err(io::Error::from_raw_os_error(error as i32)),
    };
    if let (OperationKind::Read, Ok(count)) = (operation.kind, &result) {
        // SAFETY: the system has initialised `count` bytes, and was given a capacity of `CHUNK`.
        unsafe { operation.bytes.set_len((*count).min(CHUNK)) };
    }
    let pipe = operation.pipe.clone();
    let ready = pipe.complete(operation, result);
    pipe.report(ready);
}

fn read_result(bytes: Vec<u8>, result: io::Result<usize>) -> (ReadState, Ready) {
    match result {
        Ok(_) => (ReadState::Buffered { bytes, taken: 0 }, readable(None)),
        Err(why) => {
            let ready = readable(Some(&why));
            (ReadState::Failed(why), ready)
        }
    }
}

/// Returns the readiness to report for a read that ended.
fn readable(why: Option<&io::Error>) -> Ready {
    if why.is_some_and(is_end) { Ready::READABLE | Ready::READ_CLOSED } else { Ready::READABLE }
}

/// Returns true if the error means that the other end is closed, which is the end of the stream.
fn is_end(why: &io::Error) -> bool {
    is(why, ERROR_BROKEN_PIPE)
}

fn is(why: &io::Error, number: u32) -> bool {
    why.raw_os_error() == Some(number as i32)
}

/// Converts the result of a Windows call: zero means that it failed.
pub(crate) fn worked(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn raw(handle: &OwnedHandle) -> HANDLE {
    handle.as_raw_handle()
}
