//! Arguments that follow a flag for secrets: `--password X`, `redis-cli -a X`, `curl -u me:X`.

use stateward_redact::is_secret;

/// Programs whose `-p` is not a password: a port, a path.
const OTHER_P: [&str; 19] = [
    "mkdir",
    "cp",
    "install",
    "rsync",
    "tar",
    "psql",
    "pg_isready",
    "pg_dump",
    "pg_basebackup",
    "postgres",
    "redis-cli",
    "redis-server",
    "redis",
    "valkey-cli",
    "ssh",
    "scp",
    "nc",
    "ps",
    "patch",
];

/// Programs with the password attached to `-p`: `-pX`.
const ATTACHED_P: [&str; 5] = ["mysql", "mariadb", "sshpass", "7z", "mongo"];

/// Programs whose `-a` is a password.
const PASSWORD_A: [&str; 3] = ["redis", "valkey", "keydb"];

/// Flags with credentials: `me:password`.
const LOGIN: [&str; 5] = ["-u", "-U", "--user", "--proxy-user", "--username"];

/// The position in a word where a secret starts, given the words before it. `around` may identify the program.
pub(super) fn secret_from(word: &str, before: &[&str], around: &[&str]) -> Option<usize> {
    let programs = || {
        let said = before.iter().chain(around).filter(|word| !word.starts_with('-'));
        said.map(|word| program(word))
    };
    if let Some(attached) = word.strip_prefix("-p")
        && !attached.is_empty()
        && !is_reference(attached)
        && programs().any(|name| ATTACHED_P.iter().any(|known| name.starts_with(known)))
    {
        return Some(2);
    }
    let flag = before
        .last()
        .filter(|flag| flag.starts_with('-') && !flag.contains('='))?;
    if word.starts_with('-') || word.is_empty() || is_reference(word) {
        return None;
    }
    if is_secret(flag.trim_start_matches('-')) {
        return Some(0);
    }
    match *flag {
        "-p" => {
            let mut ports = word.split(':');
            let port = ports.all(|port| port.chars().all(|c| c.is_ascii_digit()) && port.len() <= 5);
            let path = word.starts_with(['/', '.', '~']);
            let other = programs().any(|name| OTHER_P.contains(&name));
            (!port && !path && !other).then_some(0)
        }
        "-a" => {
            let redis = programs().any(|name| PASSWORD_A.iter().any(|known| name.starts_with(known)));
            redis.then_some(0)
        }
        flag if LOGIN.contains(&flag) => {
            let colon = word.find(':')?;
            // A user ID and a group ID.
            let numbers = word.chars().all(|c| c.is_ascii_digit() || c == ':');
            (!numbers && colon + 1 < word.len()).then_some(colon + 1)
        }
        _ => None,
    }
}

/// `$PASSWORD` and `$(PASSWORD)` are only references.
fn is_reference(word: &str) -> bool {
    let word = word.trim_matches(['"', '\'']);
    let name = word
        .strip_prefix('$')
        .map(|name| name.trim_matches(['(', ')', '{', '}']));
    name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// `redis` of `registry/library/redis:7` and `mysql` of `/usr/bin/mysql`.
fn program(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.split([':', '@']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("run --password X", Some(0))]
    #[case("run -p X", Some(0))]
    #[case("run -p 5432", None)]
    #[case("run -p /data", None)]
    #[case("docker run -p 8080:80", None)]
    #[case("docker login -u me -p X", Some(0))]
    #[case("redis-server --requirepass X", Some(0))]
    #[case("mkdir -p data", None)]
    #[case("psql -h db -p X", None)]
    #[case("redis-cli -a X", Some(0))]
    #[case("/usr/bin/redis-cli -h db -a X", Some(0))]
    #[case("ls -a X", None)]
    #[case("curl -u admin:X", Some(6))]
    #[case("curl -u admin", None)]
    #[case("run -u 1000:1000", None)]
    #[case("mysqladmin -uroot -pX", Some(2))]
    #[case("run -port", None)]
    #[case("run --password $PASSWORD", None)]
    #[case("run --password $(PASSWORD)", None)]
    #[case("run --token --verbose", None)]
    fn a_flag_says_what_is_secret(#[case] line: &str, #[case] expected: Option<usize>) {
        let words: Vec<_> = line.split(' ').collect();
        let (word, before) = words.split_last().unwrap();
        assert_eq!(secret_from(word, before, &[]), expected);
    }

    #[test]
    fn the_image_tells_what_its_arguments_are_for() {
        assert_eq!(secret_from("X", &["-a"], &["docker.io/library/redis:7"]), Some(0));
        assert_eq!(secret_from("X", &["-a"], &["db:7"]), None);
    }
}
