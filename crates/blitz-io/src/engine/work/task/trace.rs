//! Spans and events for `tracing`, with the names and targets that Tokio's consoles
//! read; all of it is empty without the feature.
//!
//! A subscriber is user code. So the spawning thread makes a task's span before anything
//! is locked or borrowed; the span is entered and left around each poll inside the
//! task's own guard against panics; and a subscriber's panic elsewhere is contained.

/// The kind of a task, by which consoles sort tasks.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "only spans say it"))]
pub(crate) enum TaskKind {
    Task,
    Local,
    Blocking,
}

#[cfg(not(feature = "tracing"))]
pub(crate) use self::off::{panicked, trace, woken};
#[cfg(feature = "tracing")]
pub(crate) use self::on::{SpanInfo, panicked, trace, woken};

#[cfg(not(feature = "tracing"))]
mod off {
    use std::ptr::NonNull;

    use super::TaskKind;
    use crate::engine::work::task::cell::{Header, Label};

    /// The future itself: without the feature nothing wraps it.
    type Traced<F> = F;

    #[inline(always)]
    pub(crate) fn trace<F, X>(future: F, label: Label<X>, _: TaskKind) -> (Traced<F>, Label<X>) {
        (future, label)
    }

    #[inline(always)]
    pub(crate) fn woken(_: &Header, _: &'static str) {}

    /// Does nothing without the feature.
    ///
    /// # Safety
    /// 1. The task is alive.
    #[inline(always)]
    pub(crate) unsafe fn panicked(_: NonNull<Header>) {}
}

#[cfg(feature = "tracing")]
mod on {
    use std::{
        num::NonZeroU64,
        panic::{AssertUnwindSafe, catch_unwind},
        ptr::NonNull,
    };

    use tracing::instrument::{Instrument, Instrumented};

    use super::TaskKind;
    use crate::engine::{
        prim::{discard, ids},
        work::task::{
            cell::{Header, Id, Label},
            extra::Extra,
        },
    };

    /// The future wrapped in its span.
    type Traced<F> = Instrumented<F>;

    /// The part of a task's header that identifies its span.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct SpanInfo {
        /// The task's ID. The span records it, so it is taken before the span is made.
        pub(crate) task: Id,
        span: Option<NonZeroU64>,
    }

    /// Creates the span of a task that is about to be spawned, and wraps the future in it.
    pub(crate) fn trace<F, X: Extra>(
        future: F,
        mut label: Label<X>,
        kind: TaskKind,
    ) -> (Traced<F>, Label<X>) {
        let task = Id::new(NonZeroU64::new(ids::take(1)).expect("2^64 tasks were spawned"));
        let name: &str = label.extra.name().map_or("", |name| name);
        let (at, bytes) = (label.spawned_at, size_of::<F>());
        // A target is part of a span's static description, so there are two descriptions.
        let span = match kind {
            TaskKind::Blocking => tracing::trace_span!(
                target: "tokio::task::blocking",
                "runtime.spawn",
                kind = %"blocking",
                task.name = %name,
                task.id = task.as_u64(),
                "fn" = %std::any::type_name::<F>(),
                size.bytes = bytes,
                loc.file = at.file(),
                loc.line = at.line(),
                loc.col = at.column(),
            ),
            TaskKind::Task | TaskKind::Local => tracing::trace_span!(
                target: "tokio::task",
                parent: None,
                "runtime.spawn",
                kind = %match kind { TaskKind::Local => "local", _ => "task" },
                task.name = %name,
                task.id = task.as_u64(),
                size.bytes = bytes,
                loc.file = at.file(),
                loc.line = at.line(),
                loc.col = at.column(),
            ),
        };
        let span_id = span.id().map(|id| id.into_non_zero_u64());
        label.span_info = Some(SpanInfo { task, span: span_id });
        (future.instrument(span), label)
    }

    /// Records that a waker of the task was used.
    pub(crate) fn woken(task: &Header, op: &'static str) {
        if let Some(span) = task.span_info.and_then(|span_info| span_info.span) {
            // A wake-up must take place even if a subscriber panics.
            let result = catch_unwind(AssertUnwindSafe(|| {
                tracing::trace!(target: "tokio::task::waker", op, task.id = span.get());
            }));
            if let Err(payload) = result {
                discard(payload);
            }
        }
    }

    /// Reports a task's panic with the task's name and ID, which the panic hook does not know.
    ///
    /// # Safety
    /// 1. The task is alive.
    #[cold]
    pub(crate) unsafe fn panicked(task: NonNull<Header>) {
        let result = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: obligation 1: the task is alive, so its header and name can be read.
            let (header, name) = unsafe { (task.as_ref(), Header::name(task)) };
            let (at, name): (_, &str) = (header.spawned_at, name.map_or("", |name| name));
            tracing::error!(
                target: "blitz_io::task",
                message = "a task panicked",
                task.id = header.id.as_u64(),
                task.name = %name,
                loc.file = at.file(),
                loc.line = at.line(),
                loc.col = at.column(),
            );
        }));
        if let Err(payload) = result {
            discard(payload);
        }
    }
}
