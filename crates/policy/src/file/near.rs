//! Which of some words was likely meant.

/// The longest word that is compared, in bytes.
const WORD_BYTES_MAX: usize = 64;

/// The word that is written most like this one, if one is: `limits` for `Limit`, say.
#[must_use]
pub fn near<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let plain = plain(word);
    let close = words.into_iter().map(|known| (distance(plain.as_bytes(), known.as_bytes()), known));
    let (distance, known) = close.min_by_key(|(distance, _)| *distance)?;
    (distance <= known.len().max(word.len()) / 3).then_some(known)
}

/// In lower case, with `_` between words.
fn plain(word: &str) -> String {
    word.to_ascii_lowercase().replace(['-', ' '], "_")
}

/// How many letters have to be put in, left out, replaced or swapped with their neighbour.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                    let swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                    let swapped = if swapped { rows[i - 2][j - 2] + 1 } else { usize::MAX };
                    replaced.min(swapped).min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1)
                }
            };
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant() {
        let words = ["limits", "match", "on_missing", "at_bound"];
        let cases = ["limit", "Limits", "lmiits", "macth", "on-missing", "onmissing", "atbound", "at_bounds"];
        let meant = ["limits", "limits", "limits", "match", "on_missing", "on_missing", "at_bound", "at_bound"];
        assert_eq!(cases.map(|word| near(word, words)), meant.map(Some));
        assert_eq!(["xyz", "burst", ""].map(|word| near(word, words)), [None; 3]);
        assert_eq!(near(&"limits".repeat(20), words), None);
    }
}
