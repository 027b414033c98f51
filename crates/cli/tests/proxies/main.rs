//! Forward auth behind real proxies, each by the configuration that its page in `docs/` shows. Only the ports are
//! replaced, and where a program keeps its files.

mod api;
mod asking;
#[path = "../passing/authority.rs"]
#[allow(dead_code, reason = "each test program uses its own part of it")]
mod authority;
mod checks;
mod front;
mod http2;
mod page;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;

use front::{Recipe, tool};

/// The tests of one proxy.
macro_rules! behind {
    ($name:ident, $recipe:expr) => {
        mod $name {
            use super::*;

            const RECIPE: Recipe = $recipe;

            #[test]
            fn br_118_callers_are_limited_whoever_they_say_they_are() {
                checks::callers_are_limited(&RECIPE);
            }

            #[test]
            fn the_fields_of_an_older_dialect_are_passed_on_too() {
                checks::another_dialect_is_told(&RECIPE);
            }

            #[test]
            fn requests_are_asked_about_without_their_bodies() {
                checks::requests_are_asked_about(&RECIPE);
            }

            #[test]
            fn while_tidegate_is_away_it_goes_as_the_page_says() {
                checks::while_tidegate_is_away(&RECIPE);
            }

            #[test]
            fn a_websocket_is_asked_about_once() {
                checks::a_websocket_is_asked_about_once(&RECIPE);
            }

            #[test]
            fn a_store_that_is_away_is_told() {
                checks::a_store_that_is_away_is_told(&RECIPE);
            }

            #[test]
            fn what_the_api_itself_denies_passes_as_it_is_and_what_it_breaks_off_is_not_sent_again() {
                checks::the_api_is_left_alone(&RECIPE);
            }
        }
    };
}

/// Most of them are alike.
const USUAL: Recipe = Recipe {
    page: "",
    files: &[],
    command: || Command::new("false"),
    at_home: |text| text,
    tells_caller: true,
    can_go_on: true,
    closed_status: 503,
    tells_store_away: true,
    asks_below: false,
};

behind!(
    nginx,
    Recipe { page: "nginx.md", files: &["nginx.conf"], command: run_nginx, at_home: nginx_at_home, ..USUAL }
);

behind!(
    traefik,
    Recipe {
        page: "traefik.md",
        files: &["traefik.yml", "dynamic.yml"],
        command: || with(tool("traefik/traefik"), "--configFile=traefik.yml"),
        tells_caller: false,
        can_go_on: false,
        closed_status: 500,
        ..USUAL
    }
);

behind!(
    caddy,
    Recipe {
        page: "caddy.md",
        files: &["Caddyfile"],
        command: || with(tool("caddy/caddy"), "run --config Caddyfile --adapter caddyfile"),
        ..USUAL
    }
);

behind!(
    haproxy,
    Recipe {
        page: "haproxy.md",
        files: &["tidegate.lua", "haproxy.cfg"],
        command: || with(tool("haproxy/haproxy"), "-db -f haproxy.cfg"),
        ..USUAL
    }
);

behind!(
    envoy,
    Recipe {
        page: "envoy-ext-authz.md",
        files: &["envoy.yaml"],
        command: || with(tool("envoy/envoy"), "-c envoy.yaml --use-dynamic-base-id --concurrency 1 -l warning"),
        tells_store_away: false,
        asks_below: true,
        ..USUAL
    }
);

fn with(mut command: Command, arguments: &str) -> Command {
    command.args(arguments.split(' '));
    command
}

fn run_nginx() -> Command {
    let debian = Path::new("/usr/sbin/nginx");
    let mut command = if debian.exists() { Command::new(debian) } else { Command::new("nginx") };
    command.args(["-p", ".", "-c", "nginx.conf", "-e", "error.log"]);
    command.args(["-g", "daemon off; master_process off; pid nginx.pid;"]);
    command
}

/// Its files are in its folder, and not where the package has them.
fn nginx_at_home(text: String) -> String {
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders: String = kinds.iter().map(|kind| format!("    {kind}_temp_path {kind};\n")).collect();
    text.replacen("http {\n", &format!("http {{\n{folders}    access_log off;\n"), 1)
}
