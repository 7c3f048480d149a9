//! Configuration of a runtime's histograms.

use std::{error::Error, fmt, time::Duration};

use crate::engine::pool::histogram::Scale;

/// The scale of a histogram: buckets of equal width, or buckets that double.
///
/// Only the older methods of [`Builder`](super::Builder) use it; new programs use
/// [`HistogramConfiguration`].
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::HistogramScale;
///
/// assert_ne!(HistogramScale::Linear, HistogramScale::Log);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistogramScale {
    /// All buckets have the same width.
    Linear,
    /// Each bucket is twice as wide as the one before.
    Log,
}

/// The buckets of a histogram: linear or logarithmic.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use blitz_io::runtime::{Builder, HistogramConfiguration};
///
/// let rt = Builder::new_current_thread()
///     .enable_metrics_poll_time_histogram()
///     .metrics_poll_time_histogram_configuration(HistogramConfiguration::linear(
///         Duration::from_micros(20),
///         50,
///     ))
///     .build()?;
/// assert_eq!(rt.metrics().poll_time_histogram_num_buckets(), 50);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct HistogramConfiguration {
    pub(crate) scale: Scale,
}

impl HistogramConfiguration {
    /// Creates a linear histogram with `num_buckets` buckets of `bucket_width` each. The last one
    /// has no upper limit.
    ///
    /// # Panics
    ///
    /// If `bucket_width` or `num_buckets` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use blitz_io::runtime::HistogramConfiguration;
    ///
    /// let _ten_of_100_us = HistogramConfiguration::linear(Duration::from_micros(100), 10);
    /// ```
    #[track_caller]
    pub fn linear(bucket_width: Duration, num_buckets: usize) -> Self {
        let width_ns = nanoseconds(bucket_width);
        assert!(width_ns > 0, "a histogram's buckets must be wider than zero");
        assert!(num_buckets > 0, "a histogram needs a bucket: pass at least 1");
        Self { scale: Scale::Linear { width_ns, buckets: num_buckets } }
    }

    /// Creates a logarithmic histogram; see [`LogHistogram`].
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::{HistogramConfiguration, LogHistogram};
    ///
    /// let _default = HistogramConfiguration::log(LogHistogram::default());
    /// let _fine = HistogramConfiguration::log(LogHistogram::builder().max_error(0.01));
    /// ```
    pub fn log(configuration: impl Into<LogHistogram>) -> Self {
        Self { scale: configuration.into().scale }
    }

    /// Returns ten buckets of 100 µs, which is Tokio's default.
    pub(crate) fn default_linear() -> Self {
        Self { scale: Scale::Linear { width_ns: 100_000, buckets: 10 } }
    }
}

/// Converts a duration to nanoseconds; `u64::MAX` if there are more.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A histogram whose buckets are narrow for short durations and wide for long ones, so that the
/// relative error is bounded.
///
/// Each power of two is divided into `2^p` buckets, which bounds the relative error by `2^-p`. The
/// first bucket extends from zero to the minimum value, and the last one has no upper limit.
/// [`LogHistogramBuilder`] documents the defaults.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use blitz_io::runtime::LogHistogram;
///
/// let histogram = LogHistogram::builder().max_value(Duration::from_secs(1)).build();
/// assert!(histogram.max_value() >= 1_000_000_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogHistogram {
    scale: Scale,
}

impl Default for LogHistogram {
    fn default() -> Self {
        LogHistogramBuilder::default().build()
    }
}

impl LogHistogram {
    /// Creates a builder for a `LogHistogram`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::LogHistogram;
    ///
    /// assert_eq!(LogHistogram::builder().build(), LogHistogram::default());
    /// ```
    pub fn builder() -> LogHistogramBuilder {
        LogHistogramBuilder::default()
    }

    /// Returns the lower limit of the last bucket, in nanoseconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::LogHistogram;
    ///
    /// // A minute, rounded up to the next bucket.
    /// assert_eq!(LogHistogram::default().max_value(), 7 << 33);
    /// ```
    pub fn max_value(&self) -> u64 {
        self.scale.begins_at(self.scale.buckets() - 1)
    }
}

/// A builder for a [`LogHistogram`].
///
/// By default the histogram distinguishes durations from 100 ns to 60 s with an error of at most a
/// quarter, in 119 buckets.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use blitz_io::runtime::LogHistogram;
///
/// let histogram = LogHistogram::builder()
///     .min_value(Duration::from_micros(20))
///     .max_value(Duration::from_millis(4))
///     .precision_exact(0)
///     .max_buckets(10)
///     .unwrap();
/// # let _ = histogram;
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct LogHistogramBuilder {
    min: Option<Duration>,
    max: Option<Duration>,
    precision: Option<u32>,
}

/// The highest precision: 2^-10 is an error of 0.1 %.
const MAX_PRECISION: u32 = 10;

/// The default precision: 2^-2 is an error of a quarter. It is also the lowest precision that
/// [`LogHistogramBuilder::max_error`] chooses, as in Tokio.
const DEFAULT_PRECISION: u32 = 2;

impl LogHistogramBuilder {
    /// Sets the relative error that is allowed.
    ///
    /// The histogram uses the largest of 2^-2, 2^-3 … 2^-10 that is not more than `max_error`, and
    /// 2^-10 if all of them are more.
    ///
    /// # Panics
    ///
    /// If `max_error` is not between 0 and 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::LogHistogram;
    ///
    /// let exact = LogHistogram::builder().precision_exact(4).build();
    /// assert_eq!(LogHistogram::builder().max_error(0.1).build(), exact);
    /// ```
    #[track_caller]
    pub fn max_error(mut self, max_error: f64) -> Self {
        assert!(max_error > 0.0, "max_error must be greater than 0: 0.25 is the default");
        assert!(max_error < 1.0, "max_error must be less than 1: 0.25 is the default");
        let fits = |precision: &u32| 1.0 / f64::from(1 << precision) <= max_error;
        self.precision = (DEFAULT_PRECISION..MAX_PRECISION).find(fits).or(Some(MAX_PRECISION));
        self
    }

    /// Sets the precision `p`: each power of two is divided into `2^p` buckets.
    ///
    /// With a precision of zero each bucket is twice as wide as the one before.
    ///
    /// # Panics
    ///
    /// If `p` is more than 10.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::LogHistogram;
    ///
    /// let mut coarse = LogHistogram::builder().precision_exact(0);
    /// assert!(coarse.max_buckets(40).is_ok());
    /// ```
    #[track_caller]
    pub fn precision_exact(mut self, p: u32) -> Self {
        assert!(
            p <= MAX_PRECISION,
            "precision must be <= {MAX_PRECISION}: each one more doubles the buckets"
        );
        self.precision = Some(p);
        self
    }

    /// Sets the shortest duration that is distinguished from shorter ones: the first bucket ends
    /// there or before. The default is 100 ns.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use blitz_io::runtime::LogHistogram;
    ///
    /// let mut short = LogHistogram::builder().min_value(Duration::from_millis(1));
    /// assert!(short.max_buckets(70).is_ok());
    /// ```
    pub fn min_value(mut self, duration: Duration) -> Self {
        self.min = Some(duration);
        self
    }

    /// Sets the longest duration that is distinguished from longer ones: the last bucket begins
    /// there or just after. The default is 60 s.
    ///
    /// # Panics
    ///
    /// If `duration` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use blitz_io::runtime::LogHistogram;
    ///
    /// let histogram = LogHistogram::builder().max_value(Duration::from_nanos(1 << 20)).build();
    /// assert_eq!(histogram.max_value(), 1 << 20);
    /// ```
    #[track_caller]
    pub fn max_value(mut self, duration: Duration) -> Self {
        assert!(!duration.is_zero(), "max value must be greater than 0: 60 s is the default");
        self.max = Some(duration);
        self
    }

    /// Builds the histogram if it needs at most `max_buckets` buckets.
    ///
    /// # Errors
    ///
    /// If it needs more. The error contains the number that it needs.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::{InvalidHistogramConfiguration, LogHistogram};
    ///
    /// let error = LogHistogram::builder().max_buckets(100).unwrap_err();
    /// let InvalidHistogramConfiguration::TooManyBuckets { required_bucket_count } = error;
    /// assert_eq!(required_bucket_count, 119);
    /// ```
    pub fn max_buckets(
        &mut self,
        max_buckets: usize,
    ) -> Result<LogHistogram, InvalidHistogramConfiguration> {
        let histogram = self.build();
        let required_bucket_count = histogram.scale.buckets();
        if required_bucket_count > max_buckets {
            return Err(InvalidHistogramConfiguration::TooManyBuckets { required_bucket_count });
        }
        Ok(histogram)
    }

    /// Builds the histogram.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::LogHistogram;
    ///
    /// let histogram = LogHistogram::builder().max_error(0.05).build();
    /// assert_ne!(histogram, LogHistogram::default());
    /// ```
    pub fn build(&self) -> LogHistogram {
        let min = self.min.unwrap_or(Duration::from_nanos(100));
        let max = self.max.unwrap_or(Duration::from_secs(60));
        let precision = self.precision.unwrap_or(DEFAULT_PRECISION);
        LogHistogram { scale: Scale::log(precision, nanoseconds(min), nanoseconds(max)) }
    }
}

impl From<LogHistogramBuilder> for LogHistogram {
    fn from(builder: LogHistogramBuilder) -> Self {
        builder.build()
    }
}

/// The error of [`LogHistogramBuilder::max_buckets`].
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::LogHistogram;
///
/// let error = LogHistogram::builder().max_error(0.001).max_buckets(5).unwrap_err();
/// assert!(error.to_string().contains("27291 buckets"));
/// ```
#[derive(Debug)]
pub enum InvalidHistogramConfiguration {
    /// The histogram needs more buckets than were allowed.
    TooManyBuckets {
        /// The number of buckets that the histogram needs.
        required_bucket_count: usize,
    },
}

impl fmt::Display for InvalidHistogramConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::TooManyBuckets { required_bucket_count } = self;
        write!(
            f,
            "the histogram needs {required_bucket_count} buckets: allow as many, a larger error, \
             or a smaller range"
        )
    }
}

impl Error for InvalidHistogramConfiguration {}

/// The builder's settings for one histogram: whether it is enabled, and its buckets, which can be
/// set by an older and by a newer group of methods.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) enabled: bool,
    pub(crate) configuration: HistogramConfiguration,
    /// The settings of the older methods. They override the newer ones once one of them is used, as
    /// in Tokio.
    older: Option<Older>,
}

#[derive(Debug, Clone, Copy)]
struct Older {
    scale: HistogramScale,
    resolution_ns: u64,
    buckets: usize,
}

impl Choice {
    pub(crate) fn off() -> Self {
        let configuration = HistogramConfiguration::default_linear();
        Self { enabled: false, configuration, older: None }
    }

    fn older(&mut self) -> &mut Older {
        self.older.get_or_insert(Older {
            scale: HistogramScale::Linear,
            resolution_ns: 100_000,
            buckets: 10,
        })
    }

    pub(crate) fn set_scale(&mut self, scale: HistogramScale) {
        self.older().scale = scale;
    }

    #[track_caller]
    pub(crate) fn set_resolution(&mut self, resolution: Duration) {
        assert!(!resolution.is_zero(), "a histogram's resolution must be greater than 0");
        assert!(
            resolution <= Duration::from_secs(1),
            "a histogram's resolution is 1 s at the most"
        );
        self.older().resolution_ns = nanoseconds(resolution);
    }

    #[track_caller]
    pub(crate) fn set_buckets(&mut self, buckets: usize) {
        assert!(buckets > 0, "a histogram needs a bucket: pass at least 1");
        self.older().buckets = buckets;
    }

    /// Returns the scale of the buckets; `None` if the histogram is disabled.
    pub(crate) fn scale(&self) -> Option<Scale> {
        if !self.enabled {
            return None;
        }
        Some(match self.older {
            None => self.configuration.scale,
            Some(Older { scale: HistogramScale::Linear, resolution_ns, buckets }) => {
                Scale::Linear { width_ns: resolution_ns, buckets }
            }
            Some(Older { scale: HistogramScale::Log, resolution_ns, buckets }) => {
                Scale::doubling(resolution_ns, buckets)
            }
        })
    }
}
