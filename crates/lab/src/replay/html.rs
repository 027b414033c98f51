//! The report as one page that needs nothing else: no network, no library, no other file.
//!
//! The page is the same for all reports; what it shows is the report's own JSON, which it holds, and a script of its own
//! draws it. Its policy for content forbids it to load anything.

use crate::replay::{Report, to_json};

/// The page, without a report.
const PAGE: &str = include_str!("page.html");
/// Where the report belongs.
const PLACE: &str = "REPORT_AS_JSON";

/// The report as a page.
#[must_use]
pub fn to_html(report: &Report) -> String {
    // In a script's text a browser looks for `</script` and `<!--`, and for nothing else.
    PAGE.replace(PLACE, &to_json(report).to_string().replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::PathLine;

    #[test]
    fn what_a_log_says_cannot_end_the_script() {
        let path = "/</script><script>alert(1)</script><!--".to_owned();
        let report = Report { top_paths: vec![PathLine { path, requests: 1, denied: 0 }], ..Report::default() };
        let page = to_html(&report);
        assert_eq!(page.matches("</script>").count(), 2, "the two of the page itself");
        assert!(!page.contains(PLACE) && page.contains("/\\u003c/script>"));
    }
}
