//! `stateward … 2>&1 | head -1`: a closed pipe is not an error.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it"
)]

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

/// An API server that authenticates no user, and a kubeconfig for it.
fn strangers_only() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let body = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"message":"who are you"}"#;
            let length = body.len();
            let head = "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Type: application/json";
            let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}");
        }
    });
    format!(
        r#"{{"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{{"name": "c", "cluster": {{"server": "http://{address}"}}}}],
            "contexts": [{{"name": "c", "context": {{"cluster": "c", "user": "u"}}}}],
            "users": [{{"name": "u", "user": {{}}}}]}}"#
    )
}

/// The exit code of the operator with this stderr.
fn operator(arguments: &[&str], stderr: impl Into<Stdio>) -> Option<i32> {
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    fs::write(&kubeconfig, strangers_only()).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .args(["operator", "--listen=127.0.0.1:0", "--kubeconfig"])
        .arg(kubeconfig)
        .args(arguments)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .unwrap();
    child.wait().unwrap().code()
}

#[test]
fn an_operator_whose_log_nobody_reads_does_not_panic() {
    for format in ["--log-format=text", "--log-format=json"] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        // Authentication fails, and nothing reads the message.
        assert_eq!(operator(&[format], writer), Some(1), "{format}");
    }
}

#[test]
fn an_operator_that_is_refused_says_why() {
    let (mut reader, writer) = io::pipe().unwrap();
    assert_eq!(operator(&[], writer), Some(1));
    let mut told = String::new();
    reader.read_to_string(&mut told).unwrap();
    assert!(told.contains("does not know us: who are you"), "{told}");
}

#[test]
fn a_demo_that_nobody_reads_to_its_end_has_not_failed() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let ended = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .arg("demo")
        .stdout(writer)
        .output()
        .unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), told.as_str()), (Some(0), ""));
}

#[test]
fn a_verb_whose_complaint_nobody_reads_does_not_panic() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let ended = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .args(["get", "--kubeconfig", "no-such-file"])
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(ended.code(), Some(1));
}
