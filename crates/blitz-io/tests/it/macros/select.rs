//! Tests `select!`: the first branch whose pattern matches wins, and the others are dropped.
//!
//! A program that denies warnings gets none from the macro, which this file checks by doing so.
#![deny(warnings)]

use std::{
    cell::Cell,
    convert::Infallible,
    future::{Future, IntoFuture, Ready, pending, poll_fn, ready},
    pin::{Pin, pin},
    task::Poll,
};

use blitz_io::{select, task::yield_now};

use crate::support::{
    caught_panic::panic_of,
    event_log::Log,
    manual_poll::{now, once, poll_once},
    runtimes::{all_kinds_unpreempted, one_thread},
    watchdog,
};

#[test]
fn a_branch_may_be_written_in_every_way() {
    now(async {
        assert_eq!(select! { one = async { 1 } => one }, 1);
        assert_eq!(select! { one = async { 1 } => one, }, 1);
        assert_eq!(select! { one = async { 1 } => { one } }, 1);
        assert_eq!(select! { one = async { 1 } => { one }, }, 1);
        assert_eq!(select!(biased; one = async { 1 }, if true => one), 1);
        assert_eq!(select! { else => 1 }, 1);
        assert_eq!(select! { biased; else => 1, }, 1);
        let two = select! {
            _ = pending::<()>() => { 1 }
            _ = pending::<()>(), if 1 > 2 => 1,
            2 | 3 = ready(2), if true => { 2 }
            _ = Vec::<Result<u8, u8>>::new().into_future() => 1,
            else => 3
        };
        assert_eq!(two, 2);
    });
}

/// Allows a turbofish with a comma in the place of a future.
trait IntoPending: Sized {
    fn into_future(self) -> std::future::Pending<Self> {
        pending()
    }
}

impl IntoPending for Vec<Result<u8, u8>> {}

#[test]
fn patterns_mean_what_they_mean_in_a_match() {
    const SEVEN: u8 = 7;
    let name = || ready(Some(String::from("one")));
    now(async {
        select! {
            Some(mut name) = name() => {
                name.push('!');
                assert_eq!(name, "one!");
            }
        }
        select! { Some(ref name) = name() => assert_eq!(name, "one") }
        select! {
            Some(ref mut name) = name() => {
                name.clear();
                assert_eq!(*name, "");
            }
        }
        select! { whole @ Some(_) = name() => assert_eq!(whole.unwrap(), "one") }
        select! { Some(&number) = ready(Some(&5u8)) => assert_eq!(number, 5) }
        let pair = (String::from("left"), 0u8);
        select! { &(ref left, right) = ready(&pair) => assert_eq!((&**left, right), ("left", 0)) }
        select! { Some(left) = ready(&Some(3u8)) => assert_eq!(*left, 3) }
        let digit = select! {
            SEVEN | 0..=3 = ready(9u8) => unreachable!(),
            SEVEN | 0..=3 = ready(7u8) => 7,
        };
        assert_eq!(digit, 7);
        let [first, .., last] = select! { array = ready([1, 2, 3]) => array };
        assert_eq!((first, last), (1, 3));
    });
}

#[test]
fn an_output_that_does_not_match_disables_its_branch() {
    let log = Log::default();
    let mut future = pin!(async {
        select! {
            biased;
            Some(_) = log.ready("none", None::<()>) => unreachable!(),
            Ok(()) = log.ready_at("late", 2, Err(0)) => unreachable!(),
            number = log.ready_at("last", 3, 3) => number,
        }
    });
    assert!(poll_once(&mut future).is_pending());
    assert_eq!(log.take(), ["poll none", "poll late", "poll last"]);
    assert!(poll_once(&mut future).is_pending());
    assert_eq!(log.take(), ["poll late", "poll last"]);
    assert_eq!(poll_once(&mut future), Poll::Ready(3));
    assert_eq!(log.take(), ["poll last", "drop none", "drop late", "drop last"]);
}

#[test]
fn an_output_that_does_not_match_is_dropped_at_once() {
    struct Noted<'a>(&'a Log, bool);
    impl Drop for Noted<'_> {
        fn drop(&mut self) {
            self.0.add("drop output");
        }
    }
    let log = Log::default();
    let future = pin!(async {
        select! {
            biased;
            Noted(_, true) = async { Noted(&log, false) } => unreachable!(),
            () = pending() => {}
        }
    });
    assert!(once(future).is_pending());
    assert_eq!(log.take(), ["drop output"]);
}

#[test]
fn a_precondition_keeps_a_future_from_being_polled_but_not_from_being_made() {
    let log = Log::default();
    let made = Cell::new(0);
    let make = |name| {
        made.set(made.get() + 1);
        log.ready(name, 0)
    };
    let one = now(async {
        select! {
            _ = make("disabled"), if made.get() > 0 => unreachable!(),
            _ = make("enabled"), if made.get() == 0 => 1,
        }
    });
    assert_eq!((one, made.get()), (1, 2));
    assert_eq!(log.take(), ["poll enabled", "drop disabled", "drop enabled"]);
}

#[test]
fn a_disabled_future_needs_no_type_of_output() {
    let never_polled = poll_fn(|_| panic!("it is disabled"));
    now(async {
        select! {
            _ = never_polled, if false => unreachable!(),
            () = ready(()) => {}
        }
    });
}

#[test]
fn all_futures_are_dropped_before_the_handler_runs() {
    let log = Log::default();
    now(async {
        select! {
            biased;
            () = log.ready_at("a", 2, ()) => unreachable!(),
            () = log.ready("b", ()) => log.add("handler"),
            () = log.ready("c", ()) => unreachable!(),
        }
    });
    assert_eq!(log.take(), ["poll a", "poll b", "drop a", "drop b", "drop c", "handler"]);
}

#[test]
fn a_handler_may_use_what_the_futures_have_borrowed() {
    async fn take(_: &mut u8) {}
    let mut value = 1;
    now(async {
        select! {
            biased;
            () = pending(), if false => value = 2,
            () = take(&mut value) => value += 1,
            else => value = 3,
        }
    });
    assert_eq!(value, 2);
}

#[test]
fn a_future_given_by_reference_goes_on_in_the_next_round() {
    let log = Log::default();
    let mut slow = log.ready_at("slow", 3, 7);
    let mut rounds = 0;
    let seven = now(async {
        loop {
            select! {
                biased;
                seven = &mut slow => break seven,
                () = ready(()) => rounds += 1,
            }
        }
    });
    assert_eq!((seven, rounds), (7, 2));
}

#[test]
fn handlers_belong_to_the_function_around() {
    async fn number(text: &str) -> Result<u32, std::num::ParseIntError> {
        let text = async { text };
        let mut sum = 0;
        for add in 0.. {
            select! {
                biased;
                () = ready(()), if add == 1 => continue,
                () = ready(()), if add == 3 => break,
                () = ready(()) => sum += ready(add).await,
            }
        }
        select! {
            text = text => sum += text.parse::<u32>()?,
        }
        select! {
            _ = pending::<()>() => {}
            _ = ready(()) => return Ok(sum),
        }
        unreachable!("it has returned")
    }
    assert_eq!(now(number("40")), Ok(42));
    assert!(now(number("forty")).is_err());
}

#[test]
fn with_all_disabled_it_is_else() {
    let two = now(async {
        select! {
            Some(()) = ready(None) => 1,
            _ = pending::<()>(), if false => 1,
            else => 2,
        }
    });
    assert_eq!(two, 2);
}

#[test]
fn with_all_disabled_and_no_else_select_panics_at_the_call() {
    let line = Cell::new(0);
    let disabled = async {
        // The line below.
        line.set(line!() + 1);
        select! { Some(()) = ready(None) => {} }
    };
    let panic = panic_of(|| now(disabled));
    panic.says(&["all branches are disabled and there is no else branch"]).at(file!(), line.get());
}

#[test]
fn every_branch_that_is_ready_wins_its_share() {
    let mut won = [0; 3];
    for _ in 0..3_000 {
        let branch = now(async {
            select! {
                branch = ready(0) => branch,
                branch = ready(1) => branch,
                branch = ready(2) => branch,
            }
        });
        won[branch] += 1;
    }
    // Each is expected to win a thousand times; less than 800 happens less than once in 10^10 runs.
    assert!(won.iter().all(|&won| won > 800), "{won:?}");
}

#[test]
fn after_the_random_first_branch_the_others_follow_in_order() {
    for _ in 0..100 {
        let log = Log::default();
        let future = pin!(async {
            select! {
                () = log.ready_at("0", 2, ()) => {}
                () = log.ready_at("1", 2, ()) => {}
                () = log.ready_at("2", 2, ()) => {}
            }
        });
        assert!(once(future).is_pending());
        let order = log.take()[..3].join(" ");
        let round = "poll 0 poll 1 poll 2 poll 0 poll 1 poll 2";
        assert!(round.contains(&order), "{order}");
    }
}

#[test]
fn biased_begins_at_the_top() {
    for _ in 0..100 {
        let first = now(async {
            select! {
                biased;
                () = pending() => 0,
                _ = ready(1) => 1,
                _ = ready(2) => 2,
            }
        });
        assert_eq!(first, 1);
    }
}

#[test]
fn a_task_without_budget_goes_to_the_end_of_its_queue() {
    let _watch = watchdog::start();
    for rt in all_kinds_unpreempted() {
        let result = rt.block_on(rt.spawn(async {
            let mut handles: Vec<_> = (0..128).map(|_| blitz_io::spawn(async {})).collect();
            while !handles.iter().all(|handle| handle.is_finished()) {
                yield_now().await;
            }
            // One poll, in which 128 operations complete.
            let mut counts = [0; 2];
            poll_fn(|cx| {
                let select = || async {
                    select! { () = ready(()) => {} }
                };
                counts[0] = u32::from(pin!(select()).poll(cx).is_pending());
                for handle in &mut handles {
                    assert!(Pin::new(handle).poll(cx).is_ready());
                }
                counts[1] = u32::from(pin!(select()).poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            yield_now().await;
            select! { () = ready(()) => counts }
        }));
        assert_eq!(result.unwrap(), [0, 1]);
    }
}

#[test]
fn sixty_four_branches_are_fine() {
    let branches = |_| {
        now(async {
            select! {
                x = ready(0) => x, x = ready(1) => x, x = ready(2) => x, x = ready(3) => x,
                x = ready(4) => x, x = ready(5) => x, x = ready(6) => x, x = ready(7) => x,
                x = ready(8) => x, x = ready(9) => x, x = ready(10) => x, x = ready(11) => x,
                x = ready(12) => x, x = ready(13) => x, x = ready(14) => x, x = ready(15) => x,
                x = ready(16) => x, x = ready(17) => x, x = ready(18) => x, x = ready(19) => x,
                x = ready(20) => x, x = ready(21) => x, x = ready(22) => x, x = ready(23) => x,
                x = ready(24) => x, x = ready(25) => x, x = ready(26) => x, x = ready(27) => x,
                x = ready(28) => x, x = ready(29) => x, x = ready(30) => x, x = ready(31) => x,
                x = ready(32) => x, x = ready(33) => x, x = ready(34) => x, x = ready(35) => x,
                x = ready(36) => x, x = ready(37) => x, x = ready(38) => x, x = ready(39) => x,
                x = ready(40) => x, x = ready(41) => x, x = ready(42) => x, x = ready(43) => x,
                x = ready(44) => x, x = ready(45) => x, x = ready(46) => x, x = ready(47) => x,
                x = ready(48) => x, x = ready(49) => x, x = ready(50) => x, x = ready(51) => x,
                x = ready(52) => x, x = ready(53) => x, x = ready(54) => x, x = ready(55) => x,
                x = ready(56) => x, x = ready(57) => x, x = ready(58) => x, x = ready(59) => x,
                x = ready(60) => x, x = ready(61) => x, x = ready(62) => x, x = ready(63) => x,
            }
        })
    };
    let mut won = [false; 64];
    (0..6_400).map(branches).for_each(|branch: usize| won[branch] = true);
    // A hundred draws each: that one is never drawn happens once in 10^41 runs.
    assert_eq!(won, [true; 64]);
}

#[test]
fn an_output_that_cannot_be_is_no_trouble() {
    async fn never() -> ! {
        pending().await
    }
    now(async {
        let one = select! {
            _ = never() => 0,
            one = ready(1) => one,
        };
        assert_eq!(one, 1);
        let two = select! {
            biased;
            never = pending::<Infallible>() => match never {},
            Ok(two) = ready(Ok::<_, Infallible>(2)) => two,
        };
        assert_eq!(two, 2);
    });
}

#[test]
fn whatever_becomes_a_future_may_be_selected() {
    struct Later;
    impl IntoFuture for Later {
        type Output = u8;
        type IntoFuture = Ready<u8>;

        fn into_future(self) -> Ready<u8> {
            ready(8)
        }
    }
    now(async {
        assert_eq!(select! { eight = Later => eight }, 8);
        // A temporary lives as long as the wait.
        assert_eq!(select! { nine = &mut ready(9) => nine }, 9);
    });
}

#[test]
fn the_future_is_send_if_its_parts_are() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let name = String::from("name");
    let task = rt.spawn(async move {
        select! {
            name = async { yield_now().await; name } => { yield_now().await; name }
            Some(never) = pending::<Option<String>>() => { yield_now().await; never }
        }
    });
    assert_eq!(rt.block_on(task).unwrap(), "name");
}

#[test]
fn nested_ones_do_not_mix_up_their_names() {
    let (futures, output, first) = (1, 2, 3);
    let sum = now(async {
        select! {
            x = async { select! { y = ready(futures) => y + output } } => {
                select! { y = ready(first), if x > 0 => x + y }
            }
        }
    });
    assert_eq!(sum, 6);
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "it is of words of 64 bits")]
fn the_future_is_as_large_as_tokios() {
    let one = async {
        let a = ready(0i32);
        select! { _ = a => {} }
    };
    let two = async {
        let a = ready(0i32);
        let b = ready(0i32);
        select! { _ = a => {}, _ = b => {} }
    };
    let three = async {
        let a = ready(0i32);
        let b = ready(0i32);
        let c = ready(0i32);
        select! { _ = a => {}, _ = b => {}, _ = c => {} }
    };
    assert_eq!([size_of_val(&one), size_of_val(&two), size_of_val(&three)], [32, 40, 48]);
}

/// Imports nothing, like programs that rely on the names that Tokio's macro brings into scope.
mod nothing_imported {
    #[test]
    fn pin_is_in_scope_in_a_branch() {
        crate::support::manual_poll::now(async {
            let (mut first, mut second) = (std::future::ready(1), std::future::ready(2));
            let sum = blitz_io::select! {
                biased;
                one = Pin::new(&mut first) => one + Pin::new(&mut second).await,
            };
            assert_eq!(sum, 3);
        });
    }
}
