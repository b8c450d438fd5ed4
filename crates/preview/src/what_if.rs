//! What-ifs: `pod=2:never-ready`, `image=crash`, `scale=7@step2`, `operator-down=5m`, `metric=fails@step3`, `people=10m`, `abort@step2`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use stateward_api::duration;

/// A failure or action to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    /// The text as given.
    said: String,
    pub(crate) what: What,
    /// The step, from 0. If none is given: from the first one, or always.
    pub(crate) step: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A pod of the new version has this problem; every one if no ordinal is given.
    Pod { ordinal: Option<u32>, trouble: Trouble },
    /// A user scales the set.
    Scale(u32),
    /// The operator is down for this long.
    OperatorDown(Duration),
    /// Metrics have this verdict; only those of this name if one is given.
    Metric { name: Option<String>, verdict: Verdict },
    /// Users take this long to answer; `None`: they never do.
    People(Option<Duration>),
    /// A user aborts.
    Abort,
}

/// The problem of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    NeverReady,
    Crash,
    NoImage,
    OutOfMemory,
    ReadyAfter(Duration),
}

/// The result of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Succeeds,
    Fails,
    Inconclusive,
    /// The provider does not answer.
    Silent,
}

const FORMS: &str = "one of pod=N:TROUBLE, image=TROUBLE, scale=N@stepM, operator-down=DURATION, metric=fails, people=DURATION, people=never, abort@stepM";
const TROUBLES: &str = "one of never-ready, crash, no-image, out-of-memory, ready-after=DURATION";
const VERDICTS: &str = "one of succeeds, fails, inconclusive, silent";

impl FromStr for WhatIf {
    type Err = String;

    fn from_str(said: &str) -> Result<Self, String> {
        let (head, step) = match said.rsplit_once("@step") {
            Some((head, number)) => (head, Some(step(number)?)),
            None => (said, None),
        };
        if let Some((_, what)) = head.split_once('@') {
            return Err(format!(
                "@{what} is not a moment; say @stepN, where the first step is 1"
            ));
        }
        let (key, value) = head.split_once('=').unwrap_or((head, ""));
        let what = match key {
            "pod" => pod(value)?,
            "image" => What::Pod {
                ordinal: None,
                trouble: trouble(value)?,
            },
            "scale" => What::Scale(number(value)?),
            "operator-down" => What::OperatorDown(duration::typed(value)?),
            "metric" => metric(value)?,
            "people" if value == "never" => What::People(None),
            "people" => What::People(Some(duration::typed(value)?)),
            "abort" if value.is_empty() => What::Abort,
            _ => return Err(format!("{key:?} is not something that can happen; {FORMS}")),
        };
        if step.is_some() && matches!(what, What::Pod { .. } | What::People(_)) {
            return Err(format!("{key} is so from the beginning and takes no @step"));
        }
        Ok(Self {
            said: said.to_owned(),
            what,
            step,
        })
    }
}

fn step(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(number) if number > 0 => Ok(number - 1),
        _ => Err(format!("@step{text} is not a step; the first one is @step1")),
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number of pods"))
}

fn pod(text: &str) -> Result<What, String> {
    let (ordinal, what) = text.split_once(':').ok_or_else(|| {
        format!("{text:?} does not say what becomes of the pod; say pod=N:TROUBLE, {TROUBLES}")
    })?;
    let ordinal = ordinal
        .parse()
        .map_err(|_| format!("{ordinal:?} is not the ordinal of a pod; the last part of its name is"))?;
    Ok(What::Pod {
        ordinal: Some(ordinal),
        trouble: trouble(what)?,
    })
}

fn trouble(text: &str) -> Result<Trouble, String> {
    Ok(match text.split_once('=') {
        Some(("ready-after", after)) => Trouble::ReadyAfter(duration::typed(after)?),
        _ => match text {
            "never-ready" => Trouble::NeverReady,
            "crash" => Trouble::Crash,
            "no-image" => Trouble::NoImage,
            "out-of-memory" => Trouble::OutOfMemory,
            _ => return Err(format!("{text:?} is not a trouble of pods; {TROUBLES}")),
        },
    })
}

fn metric(text: &str) -> Result<What, String> {
    let (name, verdict) = match text.rsplit_once(':') {
        Some((name, verdict)) => (Some(name.to_owned()), verdict),
        None => (None, text),
    };
    let verdict = match verdict {
        "succeeds" => Verdict::Succeeds,
        "fails" => Verdict::Fails,
        "inconclusive" => Verdict::Inconclusive,
        "silent" => Verdict::Silent,
        _ => return Err(format!("{verdict:?} is not what a metric says; {VERDICTS}")),
    };
    Ok(What::Metric { name, verdict })
}

impl fmt::Display for WhatIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const FIVE_MINUTES: Duration = Duration::from_secs(300);

    #[rstest]
    #[case("pod=2:never-ready", What::Pod { ordinal: Some(2), trouble: Trouble::NeverReady }, None)]
    #[case("pod=0:ready-after=5m", What::Pod { ordinal: Some(0), trouble: Trouble::ReadyAfter(FIVE_MINUTES) }, None)]
    #[case("image=crash", What::Pod { ordinal: None, trouble: Trouble::Crash }, None)]
    #[case("scale=7@step2", What::Scale(7), Some(1))]
    #[case("operator-down=5m", What::OperatorDown(FIVE_MINUTES), None)]
    #[case("operator-down=300s@step3", What::OperatorDown(FIVE_MINUTES), Some(2))]
    #[case("metric=fails@step3", What::Metric { name: None, verdict: Verdict::Fails }, Some(2))]
    #[case("metric=errors:silent", What::Metric { name: Some("errors".into()), verdict: Verdict::Silent }, None)]
    #[case("people=never", What::People(None), None)]
    #[case("people=5m", What::People(Some(FIVE_MINUTES)), None)]
    #[case("abort@step1", What::Abort, Some(0))]
    fn what_can_happen_is_said_in_a_word(
        #[case] said: &str,
        #[case] what: What,
        #[case] step: Option<usize>,
    ) {
        let read: WhatIf = said.parse().unwrap();
        assert_eq!((read.what.clone(), read.step), (what, step));
        assert_eq!(read.to_string(), said);
    }

    #[rstest]
    #[case("", "\"\" is not something that can happen")]
    #[case("meteor=1", "\"meteor\" is not something that can happen")]
    #[case("pod=2", "\"2\" does not say what becomes of the pod")]
    #[case("pod=db-2:crash", "\"db-2\" is not the ordinal of a pod")]
    #[case("pod=2:tired", "\"tired\" is not a trouble of pods; one of never-ready")]
    #[case("pod=2:crash@step1", "pod is so from the beginning")]
    #[case("scale=many@step1", "\"many\" is not a number of pods")]
    #[case("scale=7@step0", "@step0 is not a step; the first one is @step1")]
    #[case("scale=7@noon", "@noon is not a moment; say @stepN")]
    #[case("operator-down=soon", "\"soon\" ")]
    #[case("metric=bad", "\"bad\" is not what a metric says; one of succeeds")]
    fn what_cannot_happen_is_refused_with_what_can(#[case] said: &str, #[case] why: &str) {
        let refused = said.parse::<WhatIf>().unwrap_err();
        assert!(refused.starts_with(why), "{refused}");
    }
}
