//! Bytes that nobody would write: into every format, every notation and every condition, and nothing breaks.

use std::path::Path;

use tidegate_lab::log::{Feed, Feeds, Format, Known, Source, Zone};
use tidegate_lab::replay::{FailIf, Filter, Options, replay};
use tidegate_policy::{ClientAddress, KeyParts, Policies, Policy};

const ROUNDS: u64 = 300;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % bound.max(1)
    }

    /// Changes, removes, doubles and moves some bytes.
    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        const ODD: &[u8] = b"\0\xff\"\\[]{}:-+.,/% \t\r\n09Zx$~'()=";
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 => bytes[at] = ODD[self.below(ODD.len())],
                1 => bytes.insert(at, ODD[self.below(ODD.len())]),
                2 => {
                    bytes.remove(at);
                }
                3 => bytes.truncate(at.max(1)),
                _ => {
                    let piece = bytes[at..(at + self.below(20)).min(bytes.len())].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, piece);
                }
            }
            if bytes.is_empty() {
                bytes.push(b' ');
            }
        }
    }
}

#[test]
fn spoilt_lines_are_counted_in_every_format() {
    let mut random = Random(5);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let logs: Vec<_> =
        std::fs::read_dir(fixtures).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(logs.len() > 10);
    for known in Known::ALL {
        for log in &logs {
            let mut log = log.clone();
            (0..ROUNDS / 10).for_each(|_| random.spoil(&mut log));
            let lines = log.split(|byte| *byte == b'\n').count() as u64;
            let bytes = std::io::Cursor::new(log);
            let feed =
                Feed::new(Source::from_bytes("log", bytes).unwrap(), Some(&Format::Known(known)), Zone::UTC).unwrap();
            let limits = ["5/h".parse::<tidegate_core::Limit>().unwrap()];
            let policy = Policy::new("default", KeyParts::default()).with_limits(limits, tidegate_core::Mode::Enforce);
            let policies = Policies::new(ClientAddress::default(), vec![policy]).unwrap();
            let report = replay(&mut Feeds::new(vec![feed]), policies, None, &Options::default(), &mut |_| {});
            assert!(report.lines == lines || report.lines + 1 == lines, "{known}: {} of {lines}", report.lines);
            assert_eq!(report.lines, report.blank + report.unparsed + report.requests, "{known}");
            assert_eq!(report.requests, report.outcome.admitted + report.outcome.denied, "{known}");
        }
    }
}

#[test]
fn spoilt_words_are_understood_or_refused() {
    let mut random = Random(9);
    let words = [
        "$remote_addr - $remote_user [$time_local] \"$request\" $status",
        "%h %l %u %t \\\"%r\\\" %>s %b \\\"%{Referer}i\\\" %{%Y-%m-%dT%H:%M:%S%z}t",
        "%h %^ %e [%d:%t %^] \"%r\" %s %b %T",
        "{client} [{time}] \"{request}\" {status} {bytes}",
        "status >= 500 and (path ~ \"^/api\" or not agent = 'x y')",
        "denied > 0.1% or unparsed != 3 and late <= 5%",
    ];
    let mut understood = [0, 0, 0];
    for word in words {
        for _ in 0..ROUNDS {
            let mut bytes = word.as_bytes().to_vec();
            random.spoil(&mut bytes);
            let text = String::from_utf8_lossy(&bytes);
            understood[0] += u32::from(text.parse::<Format>().is_ok());
            match text.parse::<Filter>() {
                Ok(_) => understood[1] += 1,
                Err(error) => assert!(error.column() <= text.chars().count() + 1, "{error}"),
            }
            understood[2] += u32::from(text.parse::<FailIf>().is_ok());
        }
    }
    assert!(understood.iter().all(|count| *count > 10), "{understood:?}");
}
