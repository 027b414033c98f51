//! Who is told of requests: the access log and a collector of traces, each with a thread that alone waits for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

use crate::telling::access_log::{AccessLog, Writer};
use crate::telling::record::Recorder;
use crate::telling::trace::{Exporter, Tracer};
use crate::{AccessLogSetup, Metrics, Notice, TraceSetup};

/// Those who are told, and who writes and sends what they are told.
pub(crate) struct Told {
    /// None if nobody is told.
    recorder: Option<Arc<Recorder>>,
    /// Gone once they work.
    workers: Mutex<(Option<Writer>, Option<Exporter>)>,
    notice: Notice,
}

impl Told {
    pub(crate) fn new(
        access_log: Option<AccessLogSetup>,
        traces: Option<TraceSetup>,
        metrics: &Metrics,
        notice: Notice,
        recorder: impl FnOnce(Option<Arc<AccessLog>>, Option<Arc<Tracer>>) -> Recorder,
    ) -> Self {
        let (lines, spans) = (&metrics.log_lines, &metrics.spans);
        let log = access_log.as_ref().map(|setup| Arc::new(AccessLog::new(setup.format, lines.clone())));
        let tracer = traces.as_ref().map(|setup| Arc::new(Tracer::new(setup.sample, spans.clone())));
        let is_anybody_told = log.is_some() || tracer.is_some();
        let writer = access_log.map(|setup| Writer::new(setup.target, lines.clone(), Arc::clone(&notice)));
        let exporter = traces.map(|setup| Exporter::new(setup.endpoint, spans.clone(), Arc::clone(&notice)));
        let recorder = is_anybody_told.then(|| Arc::new(recorder(log, tracer)));
        Self { recorder, workers: Mutex::new((writer, exporter)), notice }
    }

    pub(crate) fn recorder(&self) -> Option<Arc<Recorder>> {
        self.recorder.clone()
    }

    fn log(&self) -> Option<&AccessLog> {
        self.recorder.as_ref()?.log.as_deref()
    }

    fn tracer(&self) -> Option<&Tracer> {
        self.recorder.as_ref()?.tracer.as_deref()
    }

    pub(crate) fn reopen_logs(&self) {
        self.log().iter().for_each(|log| log.spool().reopen());
    }

    /// Writes and sends from now on, on threads of `scope`, until it is closed.
    pub(crate) fn start<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        let (writer, exporter) = &mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(log), Some(mut writer)) = (self.log(), writer.take()) {
            scope.spawn(move || writer.run(log.spool()));
        }
        if let (Some(tracer), Some(mut exporter)) = (self.tracer(), exporter.take()) {
            scope.spawn(move || {
                if let Err(error) = exporter.run(tracer.spool()) {
                    (self.notice)(&format!("spans are not sent: {error}"));
                }
            });
        }
    }

    /// Nothing comes any more: what waits is written and sent, and the threads end.
    pub(crate) fn close(&self) {
        self.log().iter().for_each(|log| log.spool().close());
        self.tracer().iter().for_each(|tracer| tracer.spool().close());
    }
}
