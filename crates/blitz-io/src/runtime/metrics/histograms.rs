//! Access to the histograms of poll times and schedule latencies.

use std::{ops::Range, time::Duration};

use super::RuntimeMetrics;
use crate::engine::pool::histogram::{Histogram, Scale};

impl RuntimeMetrics {
    /// Returns true if the histogram of poll times is enabled by
    /// [`Builder::enable_metrics_poll_time_histogram`][enable].
    ///
    /// [enable]: crate::runtime::Builder::enable_metrics_poll_time_histogram
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread().build()?;
    /// assert!(!rt.metrics().poll_time_histogram_enabled());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_time_histogram_enabled(&self) -> bool {
        self.poll_times().is_some()
    }

    /// Returns the number of buckets of the histogram of poll times; zero if it is disabled.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Builder;
    ///
    /// let rt = Builder::new_current_thread().enable_metrics_poll_time_histogram().build()?;
    /// assert_eq!(rt.metrics().poll_time_histogram_num_buckets(), 10);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_time_histogram_num_buckets(&self) -> usize {
        self.poll_times().map_or(0, Scale::buckets)
    }

    /// Returns the range of poll times that the given bucket counts; empty if the histogram is
    /// disabled.
    ///
    /// # Panics
    ///
    /// If `bucket` is not below
    /// [`poll_time_histogram_num_buckets`](Self::poll_time_histogram_num_buckets).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use blitz_io::runtime::Builder;
    ///
    /// let rt = Builder::new_current_thread().enable_metrics_poll_time_histogram().build()?;
    /// let second = rt.metrics().poll_time_histogram_bucket_range(1);
    /// assert_eq!(second, Duration::from_micros(100)..Duration::from_micros(200));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn poll_time_histogram_bucket_range(&self, bucket: usize) -> Range<Duration> {
        range(self.poll_times(), bucket)
    }

    /// Returns how many polls of the given worker took a time within the range of the given bucket;
    /// zero if the histogram is disabled.
    ///
    /// Polls of spawned tasks are counted, those of the future of `block_on` are not.
    ///
    /// # Panics
    ///
    /// If `worker` is not below [`num_workers`](Self::num_workers), or `bucket` not
    /// below [`poll_time_histogram_num_buckets`](Self::poll_time_histogram_num_buckets).
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
    ///         Duration::from_millis(2),
    ///         2,
    ///     ))
    ///     .build()?;
    /// let slow = rt.spawn(async { std::thread::sleep(Duration::from_millis(2)) });
    /// rt.block_on(slow).unwrap();
    /// assert_eq!(rt.metrics().poll_time_histogram_bucket_count(0, 1), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn poll_time_histogram_bucket_count(&self, worker: usize, bucket: usize) -> u64 {
        count(self.remote(worker).poll_times.as_ref(), self.poll_times(), bucket)
    }

    /// Returns true if the histogram of schedule latencies, from being scheduled to being polled,
    /// is enabled by [`Builder::enable_metrics_schedule_latency_histogram`][enable].
    ///
    /// [enable]: crate::runtime::Builder::enable_metrics_schedule_latency_histogram
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread().build()?;
    /// assert!(!rt.metrics().schedule_latency_histogram_enabled());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn schedule_latency_histogram_enabled(&self) -> bool {
        self.latencies().is_some()
    }

    /// Returns the number of buckets of the histogram of schedule latencies; zero if it is
    /// disabled.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Builder;
    ///
    /// let rt = Builder::new_current_thread().enable_metrics_schedule_latency_histogram().build()?;
    /// assert_eq!(rt.metrics().schedule_latency_histogram_num_buckets(), 10);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn schedule_latency_histogram_num_buckets(&self) -> usize {
        self.latencies().map_or(0, Scale::buckets)
    }

    /// Returns the range of schedule latencies that the given bucket counts; empty if the histogram
    /// is disabled.
    ///
    /// # Panics
    ///
    /// If `bucket` is not below
    /// [`schedule_latency_histogram_num_buckets`](Self::schedule_latency_histogram_num_buckets).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use blitz_io::runtime::Builder;
    ///
    /// let rt = Builder::new_current_thread().enable_metrics_schedule_latency_histogram().build()?;
    /// let first = rt.metrics().schedule_latency_histogram_bucket_range(0);
    /// assert_eq!(first, Duration::ZERO..Duration::from_micros(100));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn schedule_latency_histogram_bucket_range(&self, bucket: usize) -> Range<Duration> {
        range(self.latencies(), bucket)
    }

    /// Returns how many tasks that the given worker polled had waited for a time within the range
    /// of the given bucket; zero if the histogram is disabled.
    ///
    /// # Panics
    ///
    /// If `worker` is not below [`num_workers`](Self::num_workers), or `bucket` not
    /// below
    /// [`schedule_latency_histogram_num_buckets`](Self::schedule_latency_histogram_num_buckets).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Builder;
    ///
    /// let rt = Builder::new_current_thread().enable_metrics_schedule_latency_histogram().build()?;
    /// println!("{}", rt.metrics().schedule_latency_histogram_bucket_count(0, 9));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn schedule_latency_histogram_bucket_count(&self, worker: usize, bucket: usize) -> u64 {
        count(self.remote(worker).latencies.as_ref(), self.latencies(), bucket)
    }

    /// Returns true if the histogram of poll times is enabled, under the older name of
    /// [`poll_time_histogram_enabled`](Self::poll_time_histogram_enabled).
    #[deprecated(note = "renamed to `poll_time_histogram_enabled`")]
    #[doc(hidden)]
    pub fn poll_count_histogram_enabled(&self) -> bool {
        self.poll_time_histogram_enabled()
    }

    /// Returns the number of buckets of the histogram of poll times, under the older name of
    /// [`poll_time_histogram_num_buckets`](Self::poll_time_histogram_num_buckets).
    #[deprecated(note = "renamed to `poll_time_histogram_num_buckets`")]
    #[doc(hidden)]
    pub fn poll_count_histogram_num_buckets(&self) -> usize {
        self.poll_time_histogram_num_buckets()
    }

    /// Returns the range of a bucket of the histogram of poll times, under the older name of
    /// [`poll_time_histogram_bucket_range`](Self::poll_time_histogram_bucket_range).
    #[deprecated(note = "renamed to `poll_time_histogram_bucket_range`")]
    #[doc(hidden)]
    #[track_caller]
    pub fn poll_count_histogram_bucket_range(&self, bucket: usize) -> Range<Duration> {
        self.poll_time_histogram_bucket_range(bucket)
    }

    /// Returns the count of a bucket of the histogram of poll times, under the older name of
    /// [`poll_time_histogram_bucket_count`](Self::poll_time_histogram_bucket_count).
    #[deprecated(note = "renamed to `poll_time_histogram_bucket_count`")]
    #[doc(hidden)]
    #[track_caller]
    pub fn poll_count_histogram_bucket_count(&self, worker: usize, bucket: usize) -> u64 {
        self.poll_time_histogram_bucket_count(worker, bucket)
    }

    fn poll_times(&self) -> Option<&Scale> {
        self.handle.inner.pool.config.poll_times.as_ref()
    }

    fn latencies(&self) -> Option<&Scale> {
        self.handle.inner.pool.config.latencies.as_ref()
    }
}

#[track_caller]
fn range(scale: Option<&Scale>, bucket: usize) -> Range<Duration> {
    let Some(scale) = scale else { return Duration::ZERO..Duration::ZERO };
    assert_bucket(scale, bucket);
    let Range { start, end } = scale.range(bucket);
    Duration::from_nanos(start)..Duration::from_nanos(end)
}

#[track_caller]
fn count(histogram: Option<&Histogram>, scale: Option<&Scale>, bucket: usize) -> u64 {
    let (Some(histogram), Some(scale)) = (histogram, scale) else { return 0 };
    assert_bucket(scale, bucket);
    histogram.count(bucket)
}

#[track_caller]
fn assert_bucket(scale: &Scale, bucket: usize) {
    let buckets = scale.buckets();
    assert!(
        bucket < buckets,
        "there is no bucket {bucket}: this histogram has {buckets}, from 0 on"
    );
}
