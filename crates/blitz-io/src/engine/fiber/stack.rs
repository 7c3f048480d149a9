//! Stacks of fibers: memory that ends in a guard, of which a few are kept for reuse.
//!
//! ```text
//!   low                                                   base
//!    | guard: a fault | room: pages appear when touched    |
//!                      <------------------ grows downwards
//! ```
//! A guard that is a mapping of its own (`mprotect`) splits the stack's mapping in two, and the
//! kernel allows a process some 65,000 mappings: 32,000 fibers. Linux 6.13 and newer can mark pages
//! as guards inside of a mapping (`MADV_GUARD_INSTALL`); neighbouring stacks are then one mapping,
//! and memory is the only limit.
//!
//! Fresh memory costs two system calls and a fault for each page that is touched; a kept stack
//! costs a lock. The first [`WARM`] kept stacks keep their pages; those beyond return all but the
//! uppermost pages to the system; stacks beyond [`KEPT`] are unmapped. So the memory that a carrier
//! holds is bounded, however many fibers there were.
//!
//! # Checked by
//! `a_guard_is_no_part_of_the_room`, `kept_stacks_are_bounded_and_give_memory_back`,
//! `impossible_sizes_are_refused`,
//! `an_impossible_default_size_is_an_error_only_for_its_users`,
//! `a_lack_of_memory_is_not_taken_for_one_of_mappings`,
//! `beyond_the_kernels_limit_of_mappings_the_error_names_it`; tests/fiber/many.rs:
//! `thirty_thousand_are_alive_at_once`.

use std::{
    io::{self, Read},
    num::NonZeroUsize,
    ptr::NonNull,
};

use crate::engine::prim::{Mutex, OnceLock, lock};

/// Stack size of a fiber, unless configured. A panic with a backtrace in a debug build needs about
/// 40 KiB; picked with room for a few of those, because untouched pages cost nothing.
pub(crate) const DEFAULT_SIZE: usize = 256 * 1024;

/// Minimum size, to which smaller sizes are raised, because a panic must fit to be reported as one.
pub(crate) const MIN_SIZE: usize = 64 * 1024;

/// Size of the guard. Rust code touches every page of a large frame in order, so that one page is
/// enough; C code may not, so there are some more. Picked, not measured.
const GUARD: usize = 16 * 1024;

/// Number of kept stacks that keep their pages.
const WARM: usize = 16;
/// Maximum number of kept stacks.
const KEPT: usize = 64;

/// Linux's number of the advice that marks pages as guards.
#[cfg(target_os = "linux")]
const MADV_GUARD_INSTALL: libc::c_int = 102;

/// A stack that is not in use.
#[derive(Debug)]
pub(crate) struct FiberStack {
    low: NonNull<u8>,
    /// Length of the mapping, including the guard.
    len: usize,
    guard: usize,
}

// SAFETY: a stack is memory that belongs to the owner of the value.
unsafe impl Send for FiberStack {}
// SAFETY: through a shared reference only addresses are read.
unsafe impl Sync for FiberStack {}

/// How a guard is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// Marked inside of the mapping.
    Marked,
    /// A mapping of its own.
    Protected,
}

/// Returns the best kind of guard that this kernel supports. The result is not cached while there
/// is no memory to try it with.
fn usual_guard() -> Guard {
    static USUAL: OnceLock<Guard> = OnceLock::new();
    if let Some(usual) = USUAL.get() {
        return *usual;
    }
    let Ok(stack) = FiberStack::map(MIN_SIZE) else { return Guard::Protected };
    let usual = if stack.mark_guard() { Guard::Marked } else { Guard::Protected };
    *USUAL.get_or_init(|| usual)
}

/// Returns the system's page size.
fn page() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    *PAGE.get_or_init(|| {
        // SAFETY: `sysconf` only reads a value.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(4096)
    })
}

/// Returns the size in whole pages, at least the minimum.
fn rounded(size: usize) -> io::Result<usize> {
    let room = size.max(MIN_SIZE).checked_next_multiple_of(page());
    let fits = room.and_then(|room| room.checked_add(guard_len())).is_some_and(fits_in_isize);
    match room {
        Some(room) if fits => Ok(room),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a fiber's stack cannot have {size} bytes: request less"),
        )),
    }
}

fn fits_in_isize(len: usize) -> bool {
    isize::try_from(len).is_ok()
}

fn guard_len() -> usize {
    GUARD.next_multiple_of(page())
}

impl FiberStack {
    /// Maps a fresh stack of at least `size` bytes.
    ///
    /// # Errors
    /// Returns an error if the system grants no memory, or no further mapping.
    pub(crate) fn new(size: usize) -> io::Result<Self> {
        Self::guarded(size, usual_guard())
    }

    fn guarded(size: usize, guard: Guard) -> io::Result<Self> {
        let room = rounded(size)?;
        let stack = Self::map(room).map_err(|error| allocation_error(room, &error))?;
        let guarded = match guard {
            Guard::Marked if stack.mark_guard() => Ok(()),
            // Locked memory (`mlock`) does not support marked guards.
            Guard::Marked | Guard::Protected => stack.protect_guard(),
        };
        match guarded {
            Ok(()) => Ok(stack),
            Err(error) => Err(allocation_error(room, &error)),
        }
    }

    fn map(room: usize) -> io::Result<Self> {
        let guard = guard_len();
        let len = room + guard;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // Never backed by huge pages, and not accounted before it is touched.
        #[cfg(target_os = "linux")]
        let flags = flags | libc::MAP_STACK | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: creates a new mapping, at an address that the system chooses.
        let low = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
        if low == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let low = NonNull::new(low.cast::<u8>()).expect("the system maps nothing at zero");
        let stack = Self { low, len, guard };
        // Kernels before 6.7 ignore `MAP_STACK`, and a huge page for each stack is 500 times what
        // it needs. Kernels without huge pages return an error, which does no harm.
        #[cfg(target_os = "linux")]
        // SAFETY: this is our own mapping, of which nothing is in use.
        unsafe {
            libc::madvise(low.as_ptr().cast(), len, libc::MADV_NOHUGEPAGE);
        }
        Ok(stack)
    }

    /// Marks the guard; returns `false` if the kernel does not support it.
    fn mark_guard(&self) -> bool {
        #[cfg(target_os = "linux")]
        {
            // SAFETY: this is our own mapping, of which nothing is in use.
            unsafe { libc::madvise(self.low.as_ptr().cast(), self.guard, MADV_GUARD_INSTALL) == 0 }
        }
        #[cfg(not(target_os = "linux"))]
        false
    }

    fn protect_guard(&self) -> io::Result<()> {
        // SAFETY: this is our own mapping, of which nothing is in use.
        let result =
            unsafe { libc::mprotect(self.low.as_ptr().cast(), self.guard, libc::PROT_NONE) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns the number of bytes that a fiber may use.
    pub(crate) fn room(&self) -> usize {
        self.len - self.guard
    }

    /// Returns the addresses at which a fault is an overflow.
    pub(crate) fn guard(&self) -> std::ops::Range<usize> {
        let low = self.low.as_ptr().addr();
        low..low + self.guard
    }

    /// Returns the memory to the system, except for the uppermost pages, which the next fiber
    /// touches.
    fn give_memory_back(&self) {
        let kept = (2 * page()).min(self.room());
        // SAFETY: the guard is shorter than the mapping, so the sum is inside of it.
        let room = unsafe { self.low.as_ptr().add(self.guard) };
        // An error only means that memory stays allocated.
        // SAFETY: this is our own mapping, of which nothing is in use: its content is not needed.
        unsafe { libc::madvise(room.cast(), self.room() - kept, libc::MADV_DONTNEED) };
    }
}

impl Drop for FiberStack {
    fn drop(&mut self) {
        // SAFETY: this is our own mapping, of which nothing is in use any more.
        let unmapped = unsafe { libc::munmap(self.low.as_ptr().cast(), self.len) };
        // Unmapping in the middle of a larger mapping may need a further one, and there may be none
        // left. Then the pages are freed, and the addresses stay mapped.
        if unmapped != 0 {
            self.give_memory_back();
        }
    }
}

// SAFETY: the guard catches an overflow; the room is larger than the minimum that the trait
// requires, and both ends are page-aligned.
unsafe impl corosensei::stack::Stack for FiberStack {
    fn base(&self) -> NonZeroUsize {
        self.low.addr().saturating_add(self.len)
    }

    fn limit(&self) -> NonZeroUsize {
        self.low.addr()
    }
}

/// Returns the error for a stack that cannot be allocated, with advice: the kernel's limit on
/// mappings may be reached, or a limit on memory, and the system returns the same error for both.
#[cold]
fn allocation_error(room: usize, error: &io::Error) -> io::Error {
    let out = error.raw_os_error() == Some(libc::ENOMEM);
    let hint = match mappings() {
        Some((used, limit)) if out && used + SLACK >= limit => format!(
            "the process has used up the mappings that the kernel allows it \
             (vm.max_map_count, which is {limit}), of which a fiber may take two: raise that, or \
             have fewer fibers alive"
        ),
        _ => "have fewer fibers alive, smaller stacks, or raise the limit on memory".to_owned(),
    };
    let text = format!("no memory for a fiber's stack of {} KiB: {error}; {hint}", room / 1024);
    io::Error::new(io::ErrorKind::OutOfMemory, text)
}

/// If this few mappings are left below the limit, the limit is taken for the cause, because others
/// come and go meanwhile, and a few that are listed do not count.
const SLACK: usize = 64;

/// Returns how many mappings this process has, and how many it may have, where that is known.
fn mappings() -> Option<(usize, usize)> {
    if cfg!(not(any(target_os = "linux", target_os = "android"))) {
        return None;
    }
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()?;
    // One line for each mapping. There may be megabytes of lines and no memory, so they are read in
    // pieces.
    let mut list = std::fs::File::open("/proc/self/maps").ok()?;
    let (mut used, mut piece) = (0, [0; 4096]);
    loop {
        match list.read(&mut piece) {
            Ok(0) => return Some((used, limit)),
            Ok(len) => used += piece[..len].iter().filter(|byte| **byte == b'\n').count(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Cache of stacks of one size.
#[derive(Debug)]
pub(crate) struct StackCache {
    size: usize,
    kept: Mutex<CachedStacks>,
}

#[derive(Debug)]
struct CachedStacks {
    stacks: Vec<FiberStack>,
    closed: bool,
}

impl StackCache {
    pub(crate) fn new(size: usize) -> Self {
        Self { size, kept: Mutex::new(CachedStacks { stacks: Vec::new(), closed: false }) }
    }

    /// Returns a stack of `size` bytes, or of the default size of this cache.
    pub(crate) fn take(&self, size: Option<usize>) -> io::Result<FiberStack> {
        let size = size.unwrap_or(self.size);
        let room = rounded(size)?;
        // A default size that is impossible is an error only for callers that use it.
        if rounded(self.size).is_ok_and(|usual| usual == room)
            && let Some(stack) = lock(&self.kept).stacks.pop()
        {
            return Ok(stack);
        }
        FiberStack::new(size)
    }

    /// Keeps the stack for the next fiber, or returns it to the system.
    pub(crate) fn keep(&self, stack: FiberStack) {
        if !rounded(self.size).is_ok_and(|usual| usual == stack.room()) {
            return drop(stack);
        }
        if lock(&self.kept).stacks.len() >= WARM {
            stack.give_memory_back();
        }
        let beyond = {
            let mut kept = lock(&self.kept);
            if kept.closed || kept.stacks.len() >= KEPT {
                Some(stack)
            } else {
                kept.stacks.push(stack);
                None
            }
        };
        drop(beyond);
    }

    /// Drops the kept stacks, and keeps none from now on.
    pub(crate) fn close(&self) {
        let stacks = {
            let mut kept = lock(&self.kept);
            kept.closed = true;
            std::mem::take(&mut kept.stacks)
        };
        drop(stacks);
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use corosensei::stack::Stack as _;

    use super::{FiberStack, Guard, MIN_SIZE, StackCache, page};
    #[cfg(target_os = "linux")]
    use super::{KEPT, WARM};

    #[test]
    fn a_guard_is_no_part_of_the_room() {
        for guard in [Guard::Marked, Guard::Protected] {
            let stack = FiberStack::guarded(100_000, guard).unwrap();
            assert!(stack.room() >= 100_000 && stack.room().is_multiple_of(page()));
            assert_eq!(stack.guard().start, stack.limit().get());
            assert_eq!(stack.guard().end + stack.room(), stack.base().get());
            // SAFETY: the lowest and the highest word of our own mapping, above the guard.
            unsafe {
                (stack.guard().end as *mut u64).write(1);
                ((stack.base().get() - 8) as *mut u64).write(2);
            }
        }
        assert!(FiberStack::new(1).unwrap().room() >= MIN_SIZE);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for size in [usize::MAX, isize::MAX as usize, usize::MAX / 2 - 4096] {
            let error = FiberStack::new(size).unwrap_err();
            assert!(error.to_string().contains("request less"), "{error}");
        }
    }

    #[test]
    fn a_lack_of_memory_is_not_taken_for_one_of_mappings() {
        for guard in [Guard::Marked, Guard::Protected] {
            // The size is valid, but more than the system can grant.
            let error = FiberStack::guarded(1 << 60, guard).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
            let text = error.to_string();
            assert!(text.starts_with("no memory for a fiber's stack of"), "{text}");
            assert!(text.contains("limit on memory") && !text.contains("max_map_count"), "{text}");
        }
    }

    #[test]
    fn an_impossible_default_size_is_an_error_only_for_its_users() {
        let stacks = StackCache::new(usize::MAX);
        let error = stacks.take(None).unwrap_err();
        assert!(error.to_string().contains("request less"), "{error}");
        let stack = stacks.take(Some(MIN_SIZE)).unwrap();
        assert_eq!(stack.room(), MIN_SIZE);
        stacks.keep(stack);
        assert!(stacks.kept.lock().unwrap().stacks.is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    #[ignore = "uses up the mappings of its process: `cargo xtask stress` runs it alone"]
    fn beyond_the_kernels_limit_of_mappings_the_error_names_it() {
        let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
        let limit: usize = limit.trim().parse().unwrap();
        assert!(limit <= 1 << 20, "this system allows more than the test has memory for: {limit}");
        // Neighbours of the same kind share a mapping, so there may be a few more.
        let mut stacks = Vec::with_capacity(limit);
        let error = loop {
            match FiberStack::guarded(MIN_SIZE, Guard::Protected) {
                Ok(stack) => stacks.push(stack),
                Err(error) => break error,
            }
        };
        let made = stacks.len();
        drop(stacks);
        let text = error.to_string();
        assert!(text.contains(&format!("vm.max_map_count, which is {limit}")), "{text}");
        assert!(made > limit / 2 - 1000, "{made} of {limit}");
        drop(FiberStack::guarded(MIN_SIZE, Guard::Protected).unwrap());
    }

    /// Returns the number of bytes of the stack that are resident in memory.
    #[cfg(target_os = "linux")]
    fn resident(stack: &FiberStack) -> usize {
        let pages = stack.room() / page();
        let mut present = vec![0u8; pages];
        let room = stack.guard().end as *mut libc::c_void;
        // SAFETY: `present` has one byte for each page of our own mapping.
        let result = unsafe { libc::mincore(room, stack.room(), present.as_mut_ptr()) };
        assert_eq!(result, 0);
        present.iter().filter(|page| **page & 1 == 1).count() * page()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn kept_stacks_are_bounded_and_give_memory_back() {
        let stacks = StackCache::new(MIN_SIZE);
        let used: Vec<_> = (0..2 * KEPT)
            .map(|_| {
                let stack = stacks.take(None).unwrap();
                // SAFETY: writes the whole room of our own mapping, above the guard.
                unsafe { std::ptr::write_bytes(stack.guard().end as *mut u8, 1, stack.room()) };
                stack
            })
            .collect();
        used.into_iter().for_each(|stack| stacks.keep(stack));
        let kept = std::mem::take(&mut stacks.kept.lock().unwrap().stacks);
        assert_eq!(kept.len(), KEPT);
        for (index, stack) in kept.iter().enumerate() {
            let expected = if index < WARM { stack.room() } else { 2 * page() };
            assert_eq!(resident(stack), expected, "{index}");
        }
        // A stack of another size is not kept.
        stacks.keep(stacks.take(Some(4 * MIN_SIZE)).unwrap());
        assert!(stacks.kept.lock().unwrap().stacks.is_empty());
    }
}
