//! Builder options for histograms and latencies, which cost readings of the clock.

use std::time::Duration;

use super::Builder;
use crate::runtime::{HistogramConfiguration, HistogramScale};

impl Builder {
    /// Enables the histogram of poll times.
    ///
    /// Each poll then reads the clock twice, which costs about 45 ns; without the histogram the
    /// workers read the clock once in a few dozen polls. The results are in
    /// [`RuntimeMetrics`](crate::runtime::RuntimeMetrics).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Builder;
    ///
    /// let rt = Builder::new_current_thread().enable_metrics_poll_time_histogram().build()?;
    /// rt.block_on(rt.spawn(async {})).unwrap();
    /// let metrics = rt.metrics();
    /// let buckets = 0..metrics.poll_time_histogram_num_buckets();
    /// let polls: u64 = buckets.map(|b| metrics.poll_time_histogram_bucket_count(0, b)).sum();
    /// assert_eq!(polls, 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enable_metrics_poll_time_histogram(&mut self) -> &mut Self {
        self.poll_times.enabled = true;
        self
    }

    /// Sets the buckets of the histogram of poll times: ten of 100 µs by default.
    ///
    /// This has an effect only if the histogram is
    /// [enabled](Self::enable_metrics_poll_time_histogram).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::{Builder, HistogramConfiguration, LogHistogram};
    ///
    /// let rt = Builder::new_multi_thread()
    ///     .enable_metrics_poll_time_histogram()
    ///     .metrics_poll_time_histogram_configuration(HistogramConfiguration::log(
    ///         LogHistogram::default(),
    ///     ))
    ///     .build()?;
    /// assert_eq!(rt.metrics().poll_time_histogram_num_buckets(), 119);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics_poll_time_histogram_configuration(
        &mut self,
        configuration: HistogramConfiguration,
    ) -> &mut Self {
        self.poll_times.configuration = configuration;
        self
    }

    /// Enables measuring how long each task waits from being scheduled to being polled, for
    /// [`TaskMeta::schedule_latency`](crate::runtime::TaskMeta::schedule_latency).
    ///
    /// This has an effect only if there is a task hook, which can read it. Each poll then reads the
    /// clock.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread()
    ///     .track_task_schedule_latency()
    ///     .on_after_task_poll(|meta| println!("it waited for {:?}", meta.schedule_latency()))
    ///     .build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn track_task_schedule_latency(&mut self) -> &mut Self {
        self.hooks.track_latency = true;
        self
    }

    /// Enables the histogram of schedule latencies: the time from when a task is scheduled until it
    /// is polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Builder;
    ///
    /// let rt = Builder::new_current_thread().enable_metrics_schedule_latency_histogram().build()?;
    /// assert!(rt.metrics().schedule_latency_histogram_enabled());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enable_metrics_schedule_latency_histogram(&mut self) -> &mut Self {
        self.latencies.enabled = true;
        self
    }

    /// Sets the buckets of the histogram of schedule latencies: ten of 100 µs by default.
    ///
    /// This has an effect only if the histogram is
    /// [enabled](Self::enable_metrics_schedule_latency_histogram).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use blitz_io::runtime::{Builder, HistogramConfiguration};
    ///
    /// let rt = Builder::new_current_thread()
    ///     .enable_metrics_schedule_latency_histogram()
    ///     .metrics_schedule_latency_histogram_configuration(HistogramConfiguration::linear(
    ///         Duration::from_millis(1),
    ///         20,
    ///     ))
    ///     .build()?;
    /// assert_eq!(rt.metrics().schedule_latency_histogram_num_buckets(), 20);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics_schedule_latency_histogram_configuration(
        &mut self,
        configuration: HistogramConfiguration,
    ) -> &mut Self {
        self.latencies.configuration = configuration;
        self
    }

    /// Enables the histogram of poll times, under the older name of
    /// [`enable_metrics_poll_time_histogram`](Self::enable_metrics_poll_time_histogram).
    #[deprecated(note = "renamed to `enable_metrics_poll_time_histogram`")]
    #[doc(hidden)]
    pub fn enable_metrics_poll_count_histogram(&mut self) -> &mut Self {
        self.enable_metrics_poll_time_histogram()
    }

    /// Sets the scale of the histogram of poll times. Overrides the [configuration] of the
    /// histogram.
    ///
    /// [configuration]: Self::metrics_poll_time_histogram_configuration
    ///
    /// # Examples
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// use std::time::Duration;
    /// use blitz_io::runtime::{Builder, HistogramScale};
    ///
    /// let rt = Builder::new_current_thread()
    ///     .enable_metrics_poll_time_histogram()
    ///     .metrics_poll_count_histogram_scale(HistogramScale::Log)
    ///     .metrics_poll_count_histogram_resolution(Duration::from_nanos(1 << 16))
    ///     .build()?;
    /// let second = rt.metrics().poll_time_histogram_bucket_range(1);
    /// assert_eq!(second, Duration::from_nanos(1 << 16)..Duration::from_nanos(1 << 17));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[deprecated(note = "use `metrics_poll_time_histogram_configuration`")]
    pub fn metrics_poll_count_histogram_scale(
        &mut self,
        histogram_scale: HistogramScale,
    ) -> &mut Self {
        self.poll_times.set_scale(histogram_scale);
        self
    }

    /// Sets the width of the first bucket of the histogram of poll times: 100 µs by default.
    /// Overrides the [configuration] of the histogram.
    ///
    /// [configuration]: Self::metrics_poll_time_histogram_configuration
    ///
    /// On a log scale the width is rounded up to a power of two nanoseconds.
    ///
    /// # Panics
    ///
    /// If the width is zero, or more than a second.
    ///
    /// # Examples
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// use std::time::Duration;
    /// use blitz_io::runtime::Builder;
    ///
    /// let rt = Builder::new_current_thread()
    ///     .enable_metrics_poll_time_histogram()
    ///     .metrics_poll_count_histogram_resolution(Duration::from_micros(50))
    ///     .build()?;
    /// let first = rt.metrics().poll_time_histogram_bucket_range(0);
    /// assert_eq!(first, Duration::ZERO..Duration::from_micros(50));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[deprecated(note = "use `metrics_poll_time_histogram_configuration`")]
    #[track_caller]
    pub fn metrics_poll_count_histogram_resolution(&mut self, resolution: Duration) -> &mut Self {
        self.poll_times.set_resolution(resolution);
        self
    }

    /// Sets the number of buckets of the histogram of poll times: ten by default. Overrides
    /// the [configuration] of the histogram.
    ///
    /// [configuration]: Self::metrics_poll_time_histogram_configuration
    ///
    /// # Panics
    ///
    /// If `buckets` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// use blitz_io::runtime::Builder;
    ///
    /// let rt = Builder::new_current_thread()
    ///     .enable_metrics_poll_time_histogram()
    ///     .metrics_poll_count_histogram_buckets(15)
    ///     .build()?;
    /// assert_eq!(rt.metrics().poll_time_histogram_num_buckets(), 15);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[deprecated(note = "use `metrics_poll_time_histogram_configuration`")]
    #[track_caller]
    pub fn metrics_poll_count_histogram_buckets(&mut self, buckets: usize) -> &mut Self {
        self.poll_times.set_buckets(buckets);
        self
    }
}
