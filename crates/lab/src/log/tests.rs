//! Lines of every format, and lines that were reported to break other readers.

use super::*;
use tidegate_policy::Peer;

/// What is read of a line, in one text.
fn shown(parser: &mut Parser, bytes: &[u8]) -> String {
    let mut line = Line::default();
    match parser.read(bytes, &mut line) {
        Parsed::Request => {}
        Parsed::Nothing => return "nothing".to_owned(),
        Parsed::Fault(fault) => return fault.to_string(),
    }
    let client = match origin(line.client) {
        Ok(Origin::Peer(Peer::Ip(ip))) => ip.to_string(),
        Ok(Origin::Peer(Peer::Unix)) => "unix".to_owned(),
        Ok(Origin::Name(name)) => String::from_utf8_lossy(name).into_owned(),
        Err(fault) => fault.to_string(),
    };
    let Stamp { unix_s, ns, is_whole } = line.time;
    let ns = if is_whole { String::new() } else { format!(".{ns:09}") };
    let named = [
        ("user", line.text(line.user).into_owned()),
        ("method", line.text(line.method).into_owned()),
        ("path", line.path_text().into_owned()),
        ("protocol", line.text(line.protocol).into_owned()),
        ("host", line.text(line.authority()).into_owned()),
        ("status", if line.status == 0 { String::new() } else { line.status.to_string() }),
        ("bytes", line.bytes.map(|bytes| bytes.to_string()).unwrap_or_default()),
        ("referer", line.text(line.referer).into_owned()),
        ("agent", line.text(line.agent).into_owned()),
        ("forwarded", line.text(line.forwarded).into_owned()),
        ("ns", line.duration_ns.map(|ns| ns.to_string()).unwrap_or_default()),
    ];
    let told = named.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!(" {name}={value}"));
    format!("{client} at {unix_s}{ns}{}", told.collect::<String>())
}

/// Reads lines as a format, and holds what is read of the last.
#[track_caller]
fn check(format: &str, lines: &str, expect: &str) {
    let format: Format = format.parse().unwrap_or_else(|error| panic!("{error}"));
    let mut parser = Parser::new(&format, Zone::UTC);
    let mut last = String::new();
    for line in lines.lines() {
        last = shown(&mut parser, line.as_bytes());
    }
    assert_eq!(last, expect, "{format}: {lines}");
}

/// Detects the format of a line, and holds its name and what is read.
#[track_caller]
fn check_detected(name: &str, lines: &str, expect: &str) {
    let format = detect(lines.lines().map(str::as_bytes)).unwrap_or_else(|| panic!("{lines} is of no known format"));
    assert_eq!(format.to_string(), name, "{lines}");
    check(name, lines, expect);
}

const COMBINED: &str = r#"83.149.9.216 - - [17/May/2015:10:05:03 +0000] "GET /images/a.png?x=1 HTTP/1.1" 200 203023 "http://a.org/" "Mozilla/5.0""#;

#[test]
fn every_known_format_compiles_and_is_found_by_its_name() {
    for known in Known::ALL {
        assert_eq!(known.name().parse(), Ok(Format::Known(known)));
        let has_a_program = !matches!(known.name(), "caddy" | "traefik-json" | "json" | "cloudfront" | "w3c");
        assert_eq!(known.program().is_some(), has_a_program, "{known}");
    }
}

#[test]
fn the_formats_of_apache_and_nginx_are_told_apart() {
    let read = "83.149.9.216 at 1431857103 method=GET path=/images/a.png protocol=HTTP/1.1 status=200 bytes=203023";
    check_detected("combined", COMBINED, &format!("{read} referer=http://a.org/ agent=Mozilla/5.0"));
    let common = COMBINED.split(" \"http").next().unwrap();
    check_detected("common", common, read);
    let main = format!("{COMBINED} \"10.1.2.3, 10.0.0.1\"");
    check_detected(
        "main",
        &main,
        &format!("{read} referer=http://a.org/ agent=Mozilla/5.0 forwarded=10.1.2.3, 10.0.0.1"),
    );
    let vhost = format!("api.example:443 {COMBINED}");
    let at_host = read.replace("status", "host=api.example status");
    check_detected("vhost-combined", &vhost, &format!("{at_host} referer=http://a.org/ agent=Mozilla/5.0"));
    check_detected("vhost-common", &format!("api.example:443 {common}"), &at_host);
}

#[test]
fn the_formats_of_proxies_are_told_apart() {
    check_detected(
        "caddy",
        r#"{"level":"info","ts":1795964668.6556628,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"36338","client_ip":"192.0.2.7","proto":"HTTP/1.1","method":"GET","host":"127.0.0.1:17090","uri":"/x?y=1","headers":{"User-Agent":["probe/1.0"]}},"bytes_read":0,"user_id":"","duration":0.5,"size":335,"status":404,"resp_headers":{}}"#,
        "192.0.2.7 at 1795964668.155662800 method=GET path=/x protocol=HTTP/1.1 host=127.0.0.1:17090 status=404 \
         bytes=335 agent=probe/1.0 ns=500000000",
    );
    check_detected(
        "traefik",
        r#"127.0.0.1 - - [29/Nov/2026:15:04:28 +0000] "GET /x?y=1 HTTP/1.1" 404 335 "http://ref/" "probe/1.0" 1 "r@file" "http://127.0.0.1:17081" 4ms"#,
        "127.0.0.1 at 1795964668 method=GET path=/x protocol=HTTP/1.1 status=404 bytes=335 referer=http://ref/ \
         agent=probe/1.0 ns=4000000",
    );
    check_detected(
        "traefik-json",
        r#"{"ClientAddr":"127.0.0.1:1","ClientHost":"127.0.0.1","Duration":4000,"DownstreamStatus":404,"DownstreamContentSize":335,"RequestHost":"a.org","RequestMethod":"GET","RequestPath":"/x?y","RequestProtocol":"HTTP/1.1","StartUTC":"2026-11-29T15:04:28.697123456Z","time":"2026-11-29T15:04:29Z"}"#,
        "127.0.0.1 at 1795964668.697123456 method=GET path=/x protocol=HTTP/1.1 host=a.org status=404 bytes=335 ns=4000",
    );
    check_detected(
        "envoy",
        r#"[2026-11-29T15:04:28.697Z] "GET /x?y=1 HTTP/1.1" 404 - 0 335 2 0 "203.0.113.9, 192.0.2.1" "probe/1.0" "id" "a.org" "127.0.0.1:17081""#,
        "192.0.2.1 at 1795964668.697000000 method=GET path=/x protocol=HTTP/1.1 host=a.org status=404 bytes=335 \
         agent=probe/1.0 forwarded=203.0.113.9, 192.0.2.1 ns=2000000",
    );
    // Envoy escapes nothing.
    check(
        "envoy",
        r#"[2026-11-29T15:04:28.697Z] "GET /x\y HTTP/1.1" 404 - 0 335 2 0 "192.0.2.1" "say "hi" \" "id" "a.org" "-""#,
        "192.0.2.1 at 1795964668.697000000 method=GET path=/x\\y protocol=HTTP/1.1 host=a.org status=404 bytes=335 \
         agent=say \"hi\" \\ forwarded=192.0.2.1 ns=2000000",
    );
    let haproxy = r#"127.0.0.1:45776 [29/Nov/2026:15:04:28.687] f b/s1 0/0/0/0/7 404 500 - - ---- 1/1/0/0/0 0/0 {a|b} "GET /x?y=1 HTTP/1.1""#;
    let read = "127.0.0.1 at 1795964668.687000000 method=GET path=/x protocol=HTTP/1.1 status=404 bytes=500 ns=7000000";
    check_detected("haproxy", haproxy, read);
    check_detected("haproxy", &haproxy.replace("{a|b} ", ""), read);
    check_detected("haproxy", &format!("<134>Nov 29 15:04:28 lb haproxy[12]: {haproxy}"), read);
}

#[test]
fn the_formats_of_load_balancers_are_told_apart() {
    let alb = r#"h2 2026-11-29T15:04:30.000000Z app/lb/1 192.0.2.9:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET https://www.a.org:443/x?y HTTP/2.0" "curl/7" ECDHE TLSv1.2 arn:x "Root=1" "www.a.org" "arn:y" 1 2026-11-29T15:04:28.697000Z "forward" "-""#;
    let read = "192.0.2.9 at 1795964668.697000000 method=GET path=/x protocol=HTTP/2.0 host=www.a.org status=200 bytes=366 agent=curl/7";
    check_detected("alb", alb, read);
    let early = &alb[..alb.find(" ECDHE").unwrap()];
    check_detected("alb", early, &read.replace("668.697", "670.000").replace("host=www.a.org", "host=www.a.org:443"));
    check_detected(
        "elb",
        r#"2026-11-29T15:04:28.697000Z lb 192.0.2.9:2817 10.0.0.1:80 0.00 0.00 0.00 502 502 0 29 "GET http://a.org:80/ HTTP/1.1" "curl/7" - -"#,
        "192.0.2.9 at 1795964668.697000000 method=GET path=/ protocol=HTTP/1.1 host=a.org:80 status=502 bytes=29 agent=curl/7",
    );
}

#[test]
fn logs_that_name_their_fields_are_read_by_them() {
    check_detected(
        "w3c",
        "#Software: IIS\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query c-ip cs(User-Agent) sc-status time-taken\n\
         2026-11-29 15:04:28 10.0.0.1 GET /x y=1 192.0.2.9 Mozilla/5.0+(X11) 404 1500",
        "192.0.2.9 at 1795964667 method=GET path=/x status=404 agent=Mozilla/5.0 (X11) ns=1500000000",
    );
    // The fields change in the middle of a file.
    check(
        "w3c",
        "#Fields: date time c-ip sc-status\n#Fields: time date sc-status c-ip\n15:04:28 2026-11-29 404 192.0.2.9",
        "192.0.2.9 at 1795964668 status=404",
    );
    check("w3c", "2026-11-29 15:04:28 192.0.2.9", "#Fields: expected, got 2026-11-29 15:04:28 192.0.2.9");
    check_detected(
        "cloudfront",
        "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status \
         cs(Referer) cs(User-Agent) cs-uri-query x-host-header time-taken\n\
         2026-11-29\t15:04:28\tFRA2\t900\t192.0.2.9\tGET\td.cloudfront.net\t/x\t200\t-\tMozilla/5.0%20(X11)\t-\ta.org\t0.120",
        "192.0.2.9 at 1795964668 method=GET path=/x host=a.org status=200 bytes=900 agent=Mozilla/5.0 (X11) ns=120000000",
    );
    check_detected(
        "json",
        r#"{"time":"2026-11-29T15:04:28Z","remote_addr":"192.0.2.9","request":"GET /x HTTP/1.1","status":"404","http_user_agent":"say \"hi\"","tags":["a",{"b":1}]}"#,
        "192.0.2.9 at 1795964668 method=GET path=/x protocol=HTTP/1.1 status=404 agent=say \"hi\"",
    );
    check("json", r#"{"time":"2026-11-29T15:04:28Z","remote_addr":"192."#, "the end of a text expected, got 192.");
    check("json", &"[".repeat(40), &format!("JSON that is less deep expected, got {}", "[".repeat(23)));
}

#[test]
fn formats_can_be_written_down_in_four_notations() {
    let line = r#"192.0.2.9 - ann [29/Nov/2026:15:04:28 +0100] "GET /x HTTP/1.1" 404 335 0.250"#;
    let read = "192.0.2.9 at 1795961068 user=ann method=GET path=/x protocol=HTTP/1.1 status=404 bytes=335";
    check(
        r#"$remote_addr - ${remote_user} [$time_local] "$request" $status $body_bytes_sent $request_time"#,
        line,
        &format!("{read} ns=250000000"),
    );
    check(r#"%h %l %u %t \"%r\" %>s %b %T"#, line, &format!("{read} ns=250000000"));
    check(r#"%h %^ %e [%d:%t %^] "%r" %s %b %T"#, line, &format!("{read} ns=250000000"));
    check(r#"{client} {-} {user} [{time}] "{request}" {status} {bytes}"#, line, read);
    check(
        "$msec|$remote_addr|$uri|$status",
        "1795964668.697|::1|/x|200",
        "::1 at 1795964668.697000000 path=/x status=200",
    );
    check("%{%Y-%m-%dT%H:%M:%S%z}t %a %{us}T", "2026-11-29T15:04:28+0000 ::1 12", "::1 at 1795964668 ns=12000");
    check("$time_local $remote_addr", "29/Nov/2026:15:04:28 +0000 ::1", "::1 at 1795964668");
}

#[test]
fn a_format_that_cannot_be_says_what_it_lacks() {
    let error = |text: &str| text.parse::<Format>().unwrap_err().to_string();
    assert_eq!(error("$remote_addr"), "`$remote_addr` does not say when a request came");
    assert_eq!(error("%t"), "`%t` does not say who sent a request");
    assert!(error("combine").starts_with("there is no format `combine`; there are auto, caddy, "));
    assert!(error("{clent} {time}").starts_with("there is no field `clent`; there are -, time, client, "));
    assert_eq!(error("%h %"), "a `%` stands at the end");
    assert_eq!(error("%x %h %J"), "goaccess's notation has no `%J`");
}

#[test]
fn br_175_users_may_have_spaces_or_be_empty() {
    let line = |user: &str| {
        format!("192.0.2.1 - {user} [09/Apr/2012:14:35:48 -0400] \"GET /favicon.ico HTTP/1.1\" 200 125 \"-\" \"UA\"")
    };
    let read = |user: &str| {
        format!(
            "192.0.2.1 at 1333996548{user} method=GET path=/favicon.ico protocol=HTTP/1.1 status=200 bytes=125 agent=UA"
        )
    };
    check("combined", &line("\"user one \""), &read(" user=user one "));
    check("combined", &line("\"\""), &read(""));
    check("combined", &line("first last"), &read(" user=first last"));
    check("combined", &line("a [b"), &read(" user=a [b"));
    check("combined", &line("-"), &read(""));
}

#[test]
fn br_177_escaped_quotes_do_not_end_a_field() {
    for (agent, meant) in
        [(r#"Device 10\" Build"#, "Device 10\" Build"), (r#"\"Mozilla\""#, "\"Mozilla\""), (r"C:\\", r"C:\")]
    {
        let line =
            format!("192.0.2.1 - - [16/Apr/2018:16:19:20 +0000] \"POST /u HTTP/1.1\" 200 8073 \"-\" \"{agent}\" \"-\"");
        let read = "192.0.2.1 at 1523895560 method=POST path=/u protocol=HTTP/1.1 status=200 bytes=8073";
        check("main", &line, &format!("{read} agent={meant}"));
    }
}

#[test]
fn br_179_what_is_no_request_line_is_still_a_request() {
    let line = |request: &str| format!("192.0.2.9 - - [29/Sep/2020:04:37:17 -0400] \"{request}\" 400 157 \"-\" \"-\"");
    let read = |request: &str| format!("192.0.2.9 at 1601368637{request} status=400 bytes=157");
    check(
        "combined",
        &line(r"\x03\x00\x00/*\xE0\x00Cookie: mstshash=x"),
        &read(" path=\u{3}\0\0/*\u{fffd}\0Cookie: mstshash=x"),
    );
    check("combined", &line(r"\x16\x03\x01"), &read(" path=\u{16}\u{3}\u{1}"));
    check("combined", &line(""), &read(""));
    check("combined", &line("-"), &read(""));
    check("combined", &line("GET /a b HTTP/1.1"), &read(" method=GET path=/a b protocol=HTTP/1.1"));
    check("combined", &line("GET /"), &read(" method=GET path=/"));
}

#[test]
fn br_180_addresses_of_ipv6_are_read_with_zone_and_port() {
    check_detected(
        "vhost-combined",
        r#"host.example:443 fe80::a00:27ff:fe00:1%enp0s8 - - [07/Sep/2023:15:58:36 +0200] "GET / HTTP/2.0" 302 360 "-" "curl/7.74.0""#,
        "fe80::a00:27ff:fe00:1 at 1694095116 method=GET path=/ protocol=HTTP/2.0 host=host.example status=302 bytes=360 agent=curl/7.74.0",
    );
    for (written, client) in [("::1", "::1"), ("2001:db8::1", "2001:db8::1"), ("[2001:db8::1]:443", "2001:db8::1")] {
        let read = format!("{client} at 1694095116 method=GET path=/ protocol=HTTP/2.0 status=302 bytes=360");
        check_detected(
            "common",
            &format!("{written} - - [07/Sep/2023:15:58:36 +0200] \"GET / HTTP/2.0\" 302 360"),
            &read,
        );
    }
}

#[test]
fn br_182_protocol_and_size_are_whole() {
    check_detected(
        "common",
        r#"127.0.0.1 - user1 [10/Oct/2000:13:55:36 -0700] "GET /img_a.gif HTTP/1.0" 200 2326"#,
        "127.0.0.1 at 971211336 user=user1 method=GET path=/img_a.gif protocol=HTTP/1.0 status=200 bytes=2326",
    );
}

#[test]
fn br_187_a_field_that_drifted_is_named() {
    let drifted = r#"192.0.2.46 - - [23/May/2022:14:50:37 +0800] "POST /m HTTP/1.1" store=1&op=2 346 "-" "okhttp" "-""#;
    check("combined", drifted, "status expected, got store=1&op=2");
    let lines: Vec<_> = std::iter::repeat_n(drifted, 10).chain(std::iter::repeat_n(COMBINED, 10)).collect();
    let format = detect(lines.iter().map(|line| line.as_bytes())).unwrap();
    assert_eq!(format.to_string(), "combined");
}

#[test]
fn a_line_that_is_cut_off_behind_its_status_is_a_request() {
    let read = "83.149.9.216 at 1431857103 method=GET path=/images/a.png protocol=HTTP/1.1 status=200 bytes=203023";
    let cut = |at: &str| COMBINED.split_once(at).unwrap().0;
    check("combined", cut("/5.0"), &format!("{read} referer=http://a.org/ agent=Mozilla"));
    check("combined", cut(".org"), &format!("{read} referer=http://a"));
    check("combined", cut(" \"http"), "size in bytes expected, got 203023");
    check("combined", cut("?x"), "request expected, got GET /images/a.png");
}

#[test]
fn nothing_and_rubbish_are_told_apart() {
    check("combined", "", "");
    check("combined", "# a comment", "nothing");
    check("combined", "192.0.2.1", "client address expected, got 192.0.2.1");
    check(
        "combined",
        "- - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"",
        "client address expected, got -",
    );
    check(
        "combined",
        "1.2.3.4 - - [17/May/2015:10:05 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"",
        "time expected, got 17/May/2015:10:05 +0000",
    );
    let mut parser = Parser::new(&"combined".parse().unwrap(), Zone::UTC);
    let bytes = [b"1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET /\xff\0 HTTP/1.1\" 200 1 \"-\" \"\xfe\"".as_slice()];
    assert_eq!(
        shown(&mut parser, bytes[0]),
        "1.2.3.4 at 1431857103 method=GET path=/\u{fffd}\0 protocol=HTTP/1.1 status=200 bytes=1 agent=\u{fffd}"
    );
    assert_eq!(detect(["rubbish", ""].iter().map(|line| line.as_bytes())), None);
}
