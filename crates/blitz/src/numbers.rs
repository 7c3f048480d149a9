//! Formats numbers for people: grouped digits, and units that fit the size.

use std::time::Duration;

/// Formats `1234567` as `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a time with its unit and three digits: `512 ns`, `1.53 µs`, `2.04 s`.
pub(crate) fn time(time: Duration) -> String {
    time_ns(time.as_nanos() as f64)
}

/// Formats the time per item, for `number` items in `total`.
pub(crate) fn time_each(total: Duration, number: u64) -> String {
    time_ns(total.as_nanos() as f64 / number.max(1) as f64)
}

/// Formats a time given in nanoseconds as [`time`] does.
pub(crate) fn time_ns(ns: f64) -> String {
    // 999.5 and above would be shown as 1000 of the smaller unit.
    let (value, unit) = match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "µs"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats a size with its unit and three digits: `8.00 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if value < 1023.5 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{} {unit}", three_digits(value)) }
}

fn three_digits(value: f64) -> String {
    let places = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{bytes, count, time, time_each};

    #[test]
    fn counts_are_grouped_by_thousands() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (100_000, "100,000"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn times_carry_three_digits_and_a_unit_that_fits() {
        for (ns, text) in [
            (0, "0.00 ns"),
            (7, "7.00 ns"),
            (512, "512 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (9_996, "10.0 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (2_040_000_000, "2.04 s"),
            (61_000_000_000, "61.0 s"),
        ] {
            assert_eq!(time(Duration::from_nanos(ns)), text);
        }
    }

    #[test]
    fn a_share_may_be_less_than_a_nanosecond_and_is_never_zero() {
        assert_eq!(time_each(Duration::from_nanos(1), 4), "0.25 ns");
        assert_eq!(time_each(Duration::from_micros(50), 100), "500 ns");
        assert_eq!(time_each(Duration::from_micros(50), 0), "50.0 µs");
    }

    #[test]
    fn sizes_are_in_powers_of_two() {
        for (size, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (8 << 20, "8.00 MiB"),
            (16_700_000_000, "15.6 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(size), text);
        }
    }
}
