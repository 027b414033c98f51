//! Under another name between two denials: a caller who passes then was taken for somebody else.

use http::header::{HeaderName, HeaderValue};

use super::{Auditor, DENIALS, Service, Shown, Stop, drain};

/// Tries to slip a lie in between two denials.
const TRIES: u32 = 8;
/// So often a lie must be believed: between two denials one may return by chance.
const BELIEVED: u32 = 5;
/// The numbers of keys that are used once.
const OTHER_KEYS: u32 = 1_000_000;

/// Fields by which services take one caller for another, and what stands in front of the address in them.
const LIES: [(&str, &str); 6] = [
    ("x-forwarded-for", ""),
    ("x-real-ip", ""),
    ("forwarded", "for="),
    ("true-client-ip", ""),
    ("cf-connecting-ip", ""),
    ("x-client-ip", ""),
];
/// Networks that belong to nobody (RFC 5737).
const NETWORKS: [&str; 3] = ["192.0.2.", "198.51.100.", "203.0.113."];

/// Tries each field by which services take one caller for another, and the key's own.
pub(super) async fn lies<S: Service>(auditor: &mut Auditor<'_, S>, shown: &mut Shown) -> Result<(), Stop> {
    if shown.held_back.is_some() {
        // Nothing is denied to one who asks by himself, so a crowd keeps the queue full meanwhile.
        let crowd = shown.at_once.unwrap_or(0) + DENIALS + 2 * LIES.len() as u32;
        let (wave, believed) = tokio::join!(auditor.wave(crowd), believed_lies(auditor));
        wave?;
        shown.lies = Some(believed?);
        return Ok(());
    }
    shown.lies = Some(believed_lies(auditor).await?);
    if auditor.has_keys() {
        let chooses = passes_between_denials(auditor, |i| auditor.identity(OTHER_KEYS + i)).await?;
        shown.key_chooses = Some(chooses);
        if !chooses {
            auditor.forget_keys();
        }
    }
    Ok(())
}

async fn believed_lies<S: Service>(auditor: &Auditor<'_, S>) -> Result<Vec<&'static str>, Stop> {
    let mut believed = Vec::new();
    for (name, before) in LIES {
        let lie = |i: u32| {
            let network = NETWORKS[i as usize % NETWORKS.len()];
            let value = HeaderValue::from_str(&format!("{before}{network}{}", 7 + 31 * i)).ok();
            value.map(|value| (HeaderName::from_static(name), value)).into_iter().collect()
        };
        if passes_between_denials(auditor, lie).await? {
            believed.push(name);
        }
    }
    Ok(believed)
}

/// Does each of several callers pass while this one is denied? Each has fields of its own.
async fn passes_between_denials<S: Service>(
    auditor: &Auditor<'_, S>,
    other: impl Fn(u32) -> Vec<(HeaderName, HeaderValue)>,
) -> Result<bool, Stop> {
    let mut believed = 0;
    for i in 0..TRIES {
        // With the fields that the caller always sends, but for those of the other.
        let mut fields = auditor.identity(auditor.key());
        let others = other(i);
        fields.retain(|(name, _)| others.iter().all(|(other, _)| other != name));
        fields.extend(others);
        let (_, before) = drain(auditor, u32::MAX).await?;
        if !auditor.call_as(&fields).await? {
            return Ok(false);
        }
        let after = auditor.call().await?;
        believed += u32::from(!before.is_admitted && !after.is_admitted);
        if believed == BELIEVED {
            return Ok(true);
        }
    }
    Ok(false)
}
