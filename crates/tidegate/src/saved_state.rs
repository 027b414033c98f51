//! The buckets of this process, written down when it ends and taken up by the next one.
//!
//! What is written, numbers with the little end first:
//!
//! ```text
//! head     "tidegate", version 1 in 4 bytes, the time in nanoseconds since the epoch of Unix, two seeds; 8 bytes each
//! then any number of records, each behind its letter
//! q        count, period in nanoseconds, burst; 8 bytes each; 0 for a token bucket, 1 for a fixed window, 2 for a sliding
//!          counter, 3 for a sliding log, in 1 byte: the next quota, numbered from 0
//! b        fingerprint in 8 bytes, number of a quota in 4, deficit, stamp in nanoseconds; 8 bytes each: a bucket
//! l        fingerprint in 8 bytes, number of a quota and number of entries, 4 bytes each; then deficit and stamp of each
//!          entry, the oldest first: a sliding log
//! p        limit, number of a quota, deficit, stamp, as above: the bucket that newcomers share
//! k        first and last fingerprint, 8 bytes each: keys that may have been charged to such a one
//! e        the end: FNV-1a over all that stands before this letter, in 8 bytes
//! ```
//!
//! A bucket owes as long as its clock says, and the clock goes on while no process runs: it is that of Unix. If that has
//! been set back meanwhile, law 9 holds as for any store. What was reserved and not settled stays spent. Full buckets
//! are not written, and keys stand there as fingerprints alone; but whoever reads the seeds can check a guess, so the
//! file is for its owner's eyes.
//!
//! A file that is damaged or not ours is no reason to stop: it is told, and the buckets are full.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::time::Duration;

use tidegate_core::{Algorithm, LOG_MAX, LimitId, Quota, Rate, State, Time};
use tidegate_memory::{
    Fingerprint, PooledKeys, QUOTAS_MAX, SavedBucket, SavedLog, SavedPool, Seeds, Table, TableOptions, TooManyQuotas,
};

use crate::{Clock, Memory};

const MAGIC: &[u8; 8] = b"tidegate";
const VERSION: u32 = 1;

/// What was written down, or taken up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Buckets.
    pub buckets: u64,
    /// Those of them that found no room where they were taken up.
    pub without_room: u64,
}

/// Why nothing was taken up.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// It could not be read.
    Read(io::Error),
    /// It is something else.
    Foreign,
    /// Another version of the program wrote it.
    Version(u32),
    /// It was altered, or ends too early.
    Damaged,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "it cannot be read: {error}"),
            Self::Foreign => f.write_str("it holds no saved buckets"),
            Self::Version(version) => write!(f, "it is of version {version}, and this program writes {VERSION}"),
            Self::Damaged => f.write_str("it is damaged"),
        }
    }
}

impl std::error::Error for RestoreError {}

impl From<TooManyQuotas> for RestoreError {
    /// No table knows so many quotas that another one could not.
    fn from(TooManyQuotas: TooManyQuotas) -> Self {
        Self::Damaged
    }
}

impl From<io::Error> for RestoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged,
            _ => Self::Read(error),
        }
    }
}

impl<C: Clock> Memory<C> {
    /// Writes down all buckets that are not full. For a process that decides no more; what is decided meanwhile may or
    /// may not be there.
    ///
    /// # Errors
    /// What stops `out` from being written to.
    pub fn save(&self, out: impl Write) -> io::Result<Saved> {
        let (table, now) = (self.table(), self.now());
        let mut writer = Writer { out: Summed::new(out), numbers: HashMap::new() };
        writer.head(table.seeds(), now)?;
        let mut saved = Saved::default();
        for SavedBucket { fingerprint, quota, state } in table.buckets_at(now) {
            writer.state(b'b', fingerprint.as_u64(), &quota, state)?;
            saved.buckets += 1;
        }
        for log in table.logs_at(now) {
            writer.log(&log)?;
            saved.buckets += 1;
        }
        for SavedPool { limit, quota, state } in table.pools_at(now) {
            writer.state(b'p', limit.as_u64(), &quota, state)?;
        }
        table.pooled_keys().try_for_each(|PooledKeys { first, last }| writer.record(b'k', &[first, last]))?;
        writer.end()?;
        Ok(saved)
    }

    /// A store that takes up what another one has written down, with room as `options` say.
    ///
    /// # Errors
    /// Why that cannot be; then a store with full buckets can be made by [`Memory::new`].
    pub fn restored(options: TableOptions, clock: C, input: impl Read) -> Result<(Self, Saved), RestoreError> {
        let mut reader = Reader { input: Summed::new(input), quotas: Vec::new() };
        let mut table = Table::with_seeds(options, reader.head()?);
        let (now, mut saved) = (clock.now(), Saved::default());
        loop {
            let sum = reader.input.sum;
            match reader.bytes()? {
                [b'q'] => reader.quota()?,
                [b'b'] => {
                    let (key, quota, state) = reader.state()?;
                    let fingerprint = Fingerprint::from_u64(key).ok_or(RestoreError::Damaged)?;
                    let has_room = table.take_up_at(&SavedBucket { fingerprint, quota, state }, now)?;
                    saved.buckets += 1;
                    saved.without_room += u64::from(!has_room);
                }
                [b'l'] => {
                    saved.without_room += u64::from(!table.take_up_log_at(&reader.log()?, now)?);
                    saved.buckets += 1;
                }
                [b'p'] => {
                    let (limit, quota, state) = reader.state()?;
                    table.take_up_pool(&SavedPool { limit: LimitId::from_u64(limit), quota, state })?;
                }
                [b'k'] => {
                    let [first, last] = [reader.number()?, reader.number()?];
                    table.take_up_pooled(PooledKeys { first, last });
                }
                [b'e'] if reader.number()? == sum => return Ok((Self::of_table(table, clock), saved)),
                _ => return Err(RestoreError::Damaged),
            }
        }
    }
}

/// Whatever passes through here is summed up.
struct Summed<T> {
    inner: T,
    sum: u64,
}

impl<T> Summed<T> {
    fn new(inner: T) -> Self {
        Self { inner, sum: 0xcbf2_9ce4_8422_2325 }
    }

    /// FNV-1a. Each byte changes the sum one to one, so no single change goes unseen; it is no guard against intent.
    fn add(&mut self, bytes: &[u8]) {
        let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.sum = bytes.iter().fold(self.sum, step);
    }
}

struct Writer<W> {
    out: Summed<W>,
    /// The numbers of the quotas that were written.
    numbers: HashMap<[u64; 5], u32>,
}

impl<W: Write> Writer<W> {
    fn head(&mut self, seeds: Seeds, now: Time) -> io::Result<()> {
        self.bytes(MAGIC)?;
        self.bytes(&VERSION.to_le_bytes())?;
        [now.as_nanos(), seeds.0[0], seeds.0[1]].into_iter().try_for_each(|number| self.bytes(&number.to_le_bytes()))
    }

    fn record(&mut self, letter: u8, numbers: &[u64]) -> io::Result<()> {
        self.bytes(&[letter])?;
        numbers.iter().try_for_each(|number| self.bytes(&number.to_le_bytes()))
    }

    fn state(&mut self, letter: u8, name: u64, quota: &Quota, state: State) -> io::Result<()> {
        let number = self.number_of(quota)?;
        self.record(letter, &[name])?;
        self.bytes(&number.to_le_bytes())?;
        self.two_numbers(state)
    }

    fn log(&mut self, log: &SavedLog) -> io::Result<()> {
        let (number, count) =
            (self.number_of(&log.quota)?, u32::try_from(log.entries.len()).map_err(io::Error::other)?);
        self.record(b'l', &[log.fingerprint.as_u64()])?;
        self.bytes(&number.to_le_bytes())?;
        self.bytes(&count.to_le_bytes())?;
        log.entries.iter().try_for_each(|entry| self.two_numbers(*entry))
    }

    fn two_numbers(&mut self, state: State) -> io::Result<()> {
        self.bytes(&state.deficit().to_le_bytes())?;
        self.bytes(&state.stamp().as_nanos().to_le_bytes())
    }

    /// The number of a quota, which is written first if it is new.
    fn number_of(&mut self, quota: &Quota) -> io::Result<u32> {
        let words = quota.to_words();
        if let Some(number) = self.numbers.get(&words) {
            return Ok(*number);
        }
        // A table knows fewer than 2^32, and periods are a year at most, which fits.
        let number = u32::try_from(self.numbers.len()).map_err(io::Error::other)?;
        let period_ns = u64::try_from(quota.rate().period().as_nanos()).map_err(io::Error::other)?;
        self.record(b'q', &[quota.rate().count(), period_ns, quota.burst()])?;
        self.bytes(&[match quota.algorithm() {
            Algorithm::TokenBucket => 0,
            Algorithm::FixedWindow => 1,
            Algorithm::SlidingCounter => 2,
            Algorithm::SlidingLog => 3,
        }])?;
        self.numbers.insert(words, number);
        Ok(number)
    }

    fn end(mut self) -> io::Result<()> {
        let sum = self.out.sum;
        self.record(b'e', &[sum])?;
        self.out.inner.flush()
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.add(bytes);
        self.out.inner.write_all(bytes)
    }
}

struct Reader<R> {
    input: Summed<R>,
    quotas: Vec<Quota>,
}

impl<R: Read> Reader<R> {
    fn head(&mut self) -> Result<Seeds, RestoreError> {
        let magic = self.bytes::<8>();
        if !magic.is_ok_and(|magic| magic == *MAGIC) {
            return Err(RestoreError::Foreign);
        }
        match u32::from_le_bytes(self.bytes()?) {
            VERSION => {}
            other => return Err(RestoreError::Version(other)),
        }
        // The time is for whoever looks into the file: each bucket has its own.
        let _ = self.number()?;
        Ok(Seeds([self.number()?, self.number()?]))
    }

    fn quota(&mut self) -> Result<(), RestoreError> {
        let [count, period_ns, burst] = [self.number()?, self.number()?, self.number()?];
        let algorithm = match self.bytes()? {
            [0] => Algorithm::TokenBucket,
            [1] => Algorithm::FixedWindow,
            [2] => Algorithm::SlidingCounter,
            [3] => Algorithm::SlidingLog,
            _ => return Err(RestoreError::Damaged),
        };
        let quota = Rate::new(count, Duration::from_nanos(period_ns)).and_then(|rate| Quota::with_burst(rate, burst));
        let quota = quota.and_then(|quota| quota.with_algorithm(algorithm)).map_err(|_| RestoreError::Damaged)?;
        if self.quotas.len() >= QUOTAS_MAX {
            return Err(RestoreError::Damaged);
        }
        self.quotas.push(quota);
        Ok(())
    }

    fn state(&mut self) -> Result<(u64, Quota, State), RestoreError> {
        let (name, quota) = (self.number()?, self.known_quota()?);
        Ok((name, quota, self.two_numbers()?))
    }

    fn log(&mut self) -> Result<SavedLog, RestoreError> {
        let fingerprint = Fingerprint::from_u64(self.number()?).ok_or(RestoreError::Damaged)?;
        let (quota, count) = (self.known_quota()?, u32::from_le_bytes(self.bytes()?));
        if u64::from(count) > LOG_MAX {
            return Err(RestoreError::Damaged);
        }
        let entries = (0..count).map(|_| self.two_numbers()).collect::<Result<_, _>>()?;
        Ok(SavedLog { fingerprint, quota, entries })
    }

    fn known_quota(&mut self) -> Result<Quota, RestoreError> {
        let number = usize::try_from(u32::from_le_bytes(self.bytes()?)).ok();
        number.and_then(|number| self.quotas.get(number)).copied().ok_or(RestoreError::Damaged)
    }

    fn two_numbers(&mut self) -> Result<State, RestoreError> {
        let [deficit, stamp_ns] = [self.number()?, self.number()?];
        if deficit >= State::DEFICIT_END {
            return Err(RestoreError::Damaged);
        }
        Ok(State::from_parts(deficit, Time::from_nanos(stamp_ns)))
    }

    fn number(&mut self) -> Result<u64, RestoreError> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], RestoreError> {
        let mut bytes = [0; N];
        self.input.inner.read_exact(&mut bytes)?;
        self.input.add(&bytes);
        Ok(bytes)
    }
}
