//! Finds out at run time which traits a type implements.

use std::{
    marker::PhantomData,
    panic::{RefUnwindSafe, UnwindSafe},
};

/// Reports which traits a type implements. An inherent method takes precedence over a trait method,
/// and exists only where its bounds hold.
pub(crate) struct Probe<T: ?Sized>(pub(crate) PhantomData<T>);

macro_rules! questions {
    ($($question:ident $otherwise:ident: $trait:path;)+) => {$(
        pub(crate) trait $otherwise {
            fn $question(&self) -> bool {
                false
            }
        }
        impl<T: ?Sized> $otherwise for Probe<T> {}
        impl<T: ?Sized + $trait> Probe<T> {
            pub(crate) fn $question(&self) -> bool {
                true
            }
        }
    )+};
}

questions! {
    is_send OrNotSend: Send;
    is_sync OrNotSync: Sync;
    is_unpin OrNotUnpin: Unpin;
    is_unwind_safe OrNotUnwindSafe: UnwindSafe;
    is_ref_unwind_safe OrNotRefUnwindSafe: RefUnwindSafe;
}

/// Expands to a constant that is true if a type implements a trait. An inherent constant takes
/// precedence over one of a trait, and exists only where its bounds hold.
#[allow(unused_macros, reason = "no program uses all of them")]
macro_rules! has {
    ($type:ty: $trait:path) => {{
        struct Probe<T>(std::marker::PhantomData<T>);
        #[allow(dead_code, reason = "used where the bound does not hold")]
        trait Otherwise {
            const HAS: bool = false;
        }
        impl<T> Otherwise for Probe<T> {}
        #[allow(dead_code, reason = "used where the bound holds")]
        impl<T: $trait> Probe<T> {
            const HAS: bool = true;
        }
        Probe::<$type>::HAS
    }};
}

#[allow(unused_imports, reason = "no program uses all of them")]
pub(crate) use has;
