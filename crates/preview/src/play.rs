//! Who acts when, until it is over.

mod under_way;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use stateward_core::memory::{Activity, Beside};
use stateward_core::plan::{Plan, Step};

use crate::Error;
use crate::answers::Answers;
use crate::check;
use crate::pace::Pace;
use crate::preview::{Happening, Outcome, Person, Preview};
use crate::scribe::Scribe;
use crate::subject::{Cast, METRIC_OF_JOB, Start, Subject};
use crate::text::time;
use crate::what_if::{Trouble, What, WhatIf};
use crate::world::World;

/// How long it may go on beyond what was asked to wait for.
const HORIZON: Duration = Duration::from_secs(30 * 24 * 3600);

/// More changes of objects are not played: a metric that is measured every second of a month would take all day.
const MOST_CHANGES: u32 = 30_000;

/// How long everything may stand still, beyond what it says itself, before it is taken to stand still for good.
const PATIENCE: Duration = Duration::from_secs(2 * 3600);

/// How long it takes a set's controller and the operator to see a template, as they are played.
const AT_ONCE: Duration = Duration::from_millis(1);

/// How long the stable pods have been available when it begins.
const SETTLED_FOR: Duration = Duration::from_secs(600);

/// A template that differs from the stable one is rolled well before this.
const BEGINS_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// Plays a rollout in virtual time and says what came of it. `now` is when it begins in everybody's time, for a rollout that is
/// under way; `program` is how the user calls us, with the flags that say which cluster and namespace are meant, for the commands
/// that are named.
///
/// Blocks for as long as it takes to compute, which is a fraction of a second; the time that is played has nothing to do with it.
pub fn play(
    subject: &Subject,
    what_ifs: &[WhatIf],
    pace: Pace,
    now: Timestamp,
    program: &str,
) -> Result<Preview, Error> {
    let namespace = subject.namespace().unwrap_or("default").to_owned();
    let cast = subject.cast(now, &namespace)?;
    check::bounds(&cast, &pace)?;
    let plan = cast.plan()?;
    check::what_ifs(what_ifs, &cast, &plan)?;
    let (what_ifs, program) = (without_repetitions(what_ifs), program.to_owned());
    // A thread of its own: whoever calls may be in a runtime whose time is everybody's.
    let played = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .map_err(|error| Error::Broken(error.to_string()))?;
        runtime.block_on(async {
            let mut play = Play::open(cast, plan, what_ifs, pace, &namespace, program).await?;
            play.get_there().await?;
            play.run().await
        })
    });
    played
        .join()
        .unwrap_or_else(|_| Err(Error::Broken("it has panicked".into())))
}

/// What is said twice happens once.
fn without_repetitions(what_ifs: &[WhatIf]) -> Vec<WhatIf> {
    let mut once: Vec<WhatIf> = Vec::new();
    for what_if in what_ifs {
        if !once.contains(what_if) {
            once.push(what_if.clone());
        }
    }
    once
}

/// Something to do at a time.
#[derive(Clone, Debug, PartialEq)]
enum Deed {
    Promote,
    Resume,
    Abort,
    Scale(u32),
    StopOperator(Duration),
    StartOperator,
}

impl Deed {
    /// Somebody was waited for to do it.
    fn is_an_answer(&self) -> bool {
        matches!(self, Self::Promote | Self::Resume)
    }
}

struct Play {
    world: World,
    scribe: Scribe,
    cast: Cast,
    plan: Plan,
    what_ifs: Vec<WhatIf>,
    pace: Pace,
    namespace: String,
    program: String,
    /// In no order.
    due: Vec<(Timestamp, Deed, String)>,
    /// The step that was last reacted to.
    at: Option<usize>,
    /// The wait that somebody was told of.
    asked: Option<Waiting>,
    /// When somebody was told of it.
    asked_at: Timestamp,
    /// When somebody was last told, or last did something.
    stirred: Timestamp,
    people: Vec<Person>,
    waited: f64,
    under_way: bool,
    changes: u32,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq)]
struct Waiting {
    step: Option<usize>,
    verb: &'static str,
    deed: Deed,
}

impl Play {
    async fn open(
        cast: Cast,
        plan: Plan,
        what_ifs: Vec<WhatIf>,
        pace: Pace,
        namespace: &str,
        program: String,
    ) -> Result<Self, Error> {
        let answers = Answers::new(&what_ifs, &cast.subject);
        let world = World::open(namespace, pace.clone(), answers).await?;
        let titles = titles(&plan, &cast);
        let scribe = Scribe::new(cast.subject.clone(), namespace, cast.first_ordinal(), titles);
        Ok(Self {
            world,
            scribe,
            cast,
            plan,
            what_ifs,
            pace,
            namespace: namespace.to_owned(),
            program,
            due: Vec::new(),
            at: None,
            asked: None,
            asked_at: Timestamp::UNIX_EPOCH,
            stirred: Timestamp::UNIX_EPOCH,
            people: Vec::new(),
            waited: 0.0,
            under_way: false,
            changes: 0,
        })
    }

    /// Everything up to where the preview begins.
    async fn get_there(&mut self) -> Result<(), Error> {
        self.world.pace_set(self.cast.subject.workload());
        self.world.create(&self.cast.set).await?;
        for template in &self.cast.templates {
            self.world.create(template).await?;
        }
        if !self.pods_are_ready().await? {
            return Err(Error::Broken(format!(
                "the pods of StatefulSet {} do not become Ready",
                self.cast.subject.workload()
            )));
        }
        self.world.start_operator();
        self.world.create(&self.cast.rollout).await?;
        // The stable pods have been there for long enough to count as available.
        self.let_pass(SETTLED_FOR + self.cast.min_ready()).await?;
        let status = &self.scribe.status;
        let held = status.stable_revision.is_some() || self.cast.subject.is_left_alone();
        let taken_on = self.scribe.observed && held && status.phase != "Failed";
        if !taken_on {
            return Err(Error::NotRolled {
                what: self.cast.subject.title(),
                why: self.scribe.status.message.clone(),
            });
        }
        let (what_ifs, stable) = (
            std::mem::take(&mut self.what_ifs),
            self.scribe.revision.update.clone(),
        );
        self.scribe.revision.stable.clone_from(&stable);
        if self.cast.start == Start::Beginning {
            self.what_ifs = what_ifs;
            self.pause_if_asked().await?;
            self.scribe.begin(self.now());
            self.before_the_first_step().await?;
            self.change().await?;
            if self.cast.subject.is_left_alone() {
                // No step will come that it could wait for.
                self.suppose(|what_if| what_if.step.is_none() && !begins_before(what_if));
            }
        } else {
            let replaced = self.cast.replaced.clone();
            let rolled = replaced.as_ref().unwrap_or(&self.cast.after);
            self.world.retemplate(&self.cast.set, rolled).await?;
            self.reach_step().await?;
            self.what_ifs = what_ifs;
            self.pause_if_asked().await?;
            if self.cast.overtaken {
                self.overtake().await?;
            }
            self.scribe.begin(self.now());
            // It is there already: that is where it begins.
            (self.at, self.asked) = (None, None);
            self.people.clear();
            self.waited = 0.0;
            self.due.clear();
            self.before_the_first_step().await?;
            if self.cast.overtaken {
                self.world.start_operator();
                self.under_way = true;
            } else if replaced.is_some() {
                self.supersede().await?;
            }
            self.give_what_waits().await?;
            self.supposed_pods();
            self.react();
        }
        Ok(())
    }

    /// Waits for the pods of the version before. `false` when they do not come.
    async fn pods_are_ready(&mut self) -> Result<bool, Error> {
        let one = self.pace.ready_after + self.cast.min_ready() + Duration::from_secs(3600);
        let limit = later(self.now(), one.saturating_mul(self.cast.replicas() + 1));
        while !self.scribe.is_settled() {
            if !self.watch(limit).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is supposed to happen before the operator does anything.
    async fn before_the_first_step(&mut self) -> Result<(), Error> {
        let first = self.what_ifs.iter().filter(|what_if| begins_before(what_if));
        let deeds: Vec<_> = first
            .filter_map(|what_if| Some((deed(what_if)?, what_if.to_string())))
            .collect();
        for (deed, said) in deeds {
            self.perform(deed, said).await?;
        }
        Ok(())
    }

    async fn pause_if_asked(&mut self) -> Result<(), Error> {
        if self.verb_of_the_gate().is_some() {
            let note =
                "what is measured at this step has not been good; once somebody says so, it is measured anew";
            self.cast.notes.push(note.into());
        }
        if self.cast.subject.is_paused() || self.verb_of_the_gate().is_some() {
            let patch = json!({"spec": {"paused": true}});
            self.world.patch(&self.cast.rollout, patch).await?;
            self.let_pass(Duration::from_secs(1)).await?;
        }
        Ok(())
    }

    /// The template changes.
    async fn change(&mut self) -> Result<(), Error> {
        self.world.retemplate(&self.cast.set, &self.cast.after).await
    }

    fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    /// Lets time pass, and takes note of what happens.
    async fn let_pass(&mut self, time: Duration) -> Result<(), Error> {
        let until = later(self.now(), time);
        while self.watch(until).await? {}
        Ok(())
    }

    /// Takes note of the next thing that happens. `false` when nothing did until `limit`.
    async fn watch(&mut self, limit: Timestamp) -> Result<bool, Error> {
        let clock = self.world.clock.clone();
        tokio::select! {
            biased;
            Some(commit) = self.world.commits.recv() => {
                let now = clock.now();
                self.scribe.note(&commit, now)?;
                Ok(true)
            }
            () = clock.sleep_until(limit) => Ok(false),
        }
    }

    /// Waits for whatever comes first, and acts on it. `false` when nothing came until `limit`.
    async fn turn(&mut self, limit: Timestamp) -> Result<bool, Error> {
        let next = self.due.iter().map(|(at, ..)| *at).min();
        let until = next.map_or(limit, |next| next.min(limit));
        let clock = self.world.clock.clone();
        tokio::select! {
            biased;
            Some(commit) = self.world.commits.recv() => {
                let now = clock.now();
                self.changes += 1;
                if self.changes > MOST_CHANGES {
                    return Err(too_much(self.scribe.seconds(now)));
                }
                if &*commit.resource == "jobs.batch" && !commit.deleted {
                    let metric = commit.object["metadata"]["annotations"][METRIC_OF_JOB].as_str();
                    self.world.run_job(&commit.name, metric);
                }
                let before = self.scribe.revision.update.clone();
                self.scribe.note(&commit, now)?;
                if self.scribe.revision.update != before {
                    self.supposed_pods();
                }
                self.react();
                Ok(true)
            }
            () = clock.sleep_until(until) => {
                let Some(next) = next.filter(|next| *next <= clock.now()) else {
                    return Ok(false);
                };
                let (now_due, later) = std::mem::take(&mut self.due).into_iter().partition(|(at, ..)| *at <= next);
                self.due = later;
                for (_, deed, said) in now_due {
                    self.perform(deed, said).await?;
                }
                Ok(true)
            }
        }
    }

    /// Pods of the new version do what they are supposed to.
    fn supposed_pods(&self) {
        let revision = &self.scribe.revision;
        if revision.update == revision.stable {
            return;
        }
        let supposed = self.what_ifs.iter().filter_map(|what_if| match what_if.what {
            What::Pod { ordinal, trouble } => Some((ordinal, trouble)),
            _ => None,
        });
        let mut supposed: Vec<_> = supposed.collect();
        // What is said of one pod holds, whatever is said of all.
        supposed.sort_by_key(|(ordinal, _)| *ordinal);
        for (ordinal, trouble) in supposed {
            let set = self.cast.subject.workload();
            self.world.trouble(set, &revision.update, ordinal, trouble);
        }
    }

    /// What is supposed of these is done now.
    fn suppose(&mut self, these: impl Fn(&WhatIf) -> bool) {
        let (now, due) = (self.now(), self.what_ifs.iter().filter(|what_if| these(what_if)));
        let deeds = due.filter_map(|what_if| Some((now, deed(what_if)?, what_if.to_string())));
        self.due.extend(deeds);
    }

    /// What follows from where the rollout stands now.
    fn react(&mut self) {
        let now = self.now();
        let step = self.scribe.step();
        if step.is_some() && step != self.at {
            self.under_way = true;
            self.world.come_to(step.unwrap_or_default());
            let first = self.at.is_none();
            self.at = step;
            self.suppose(|what_if| match what_if.step {
                Some(wanted) => Some(wanted) == step,
                None => first && !begins_before(what_if),
            });
        }
        let waiting = self.waiting();
        if waiting != self.asked {
            self.asked = None;
            // Whoever was on the way comes for nothing.
            self.due.retain(|(_, deed, _)| !deed.is_an_answer());
            if let Some(waiting) = waiting {
                self.ask(waiting, now);
            }
        }
    }

    /// What somebody has to say, if anything.
    fn waiting(&self) -> Option<Waiting> {
        let Activity::Rolling(attempt) = &self.scribe.activity else {
            return None;
        };
        // Nobody is called for what is being aborted.
        if self.scribe.status.abort || self.due.iter().any(|(_, deed, _)| *deed == Deed::Abort) {
            return None;
        }
        let step = attempt.step.0 as usize;
        let of = |verb, deed| {
            let step = Some(step);
            Some(Waiting { step, verb, deed })
        };
        let status = &self.scribe.status;
        if attempt.held {
            let gate = self.verb_of_the_gate();
            let gate = gate.filter(|_| !self.cast.subject.is_paused());
            return of(gate.unwrap_or("resume"), Deed::Resume);
        }
        // A pause ends by itself, unless an analysis came to no verdict beside it.
        let ends = attempt.pausing && matches!(self.plan.steps.get(step), Some(Step::Pause(Some(_))));
        let stands = attempt.awaits_a_word() && !status.pause_conditions.is_empty();
        // Whoever is waited for beside the steps may come too late for the deadline, and is heard all the same.
        let heard = status.phase == "Paused" || matches!(attempt.beside, Beside::InDoubt(_));
        if stands && !ends && heard {
            return of("promote", Deed::Promote);
        }
        None
    }

    /// Calls for somebody, who comes when people are supposed to.
    fn ask(&mut self, waiting: Waiting, now: Timestamp) {
        let command = self.command(waiting.verb);
        if let Some(at) = self.scribe.seconds(now) {
            self.people.push(Person {
                at,
                step: waiting.step.map(|step| step + 1),
                command: command.clone(),
            });
        }
        self.scribe.tell(
            Happening::Waits {
                command: command.clone(),
            },
            now,
        );
        let people = self.what_ifs.iter().rev().find_map(|what_if| match what_if.what {
            What::People(time) => Some(time),
            _ => None,
        });
        if let Some(after) = people.unwrap_or(Some(Duration::ZERO)) {
            self.due.push((later(now, after), waiting.deed.clone(), command));
        }
        self.asked = Some(waiting);
        (self.asked_at, self.stirred) = (now, now);
    }

    fn command(&self, verb: &str) -> String {
        let command = format!("{} {verb} {}", self.program, self.cast.subject.name());
        // Of what is under way, the version is known, and typed later the command must not mean the next one.
        let under_way = matches!(self.cast.start, Start::Step(..)) && self.cast.replaced.is_none();
        match self.cast.subject.status().updated_revision.filter(|_| under_way) {
            Some(revision) => format!("{command} --revision {revision}"),
            None => command,
        }
    }

    async fn perform(&mut self, deed: Deed, said: String) -> Result<(), Error> {
        let now = self.now();
        if deed.is_an_answer() {
            self.waited += now.duration_since(self.asked_at).as_secs_f64().round();
        }
        self.stirred = now;
        self.scribe.tell(Happening::Done { what_if: said }, now);
        let rollout = &self.cast.rollout;
        match deed {
            Deed::Promote => {
                let patch = json!({"status": {"pauseConditions": null}});
                self.world.patch(rollout, patch).await
            }
            Deed::Resume => {
                self.world
                    .patch(rollout, json!({"spec": {"paused": false}}))
                    .await
            }
            Deed::Abort => {
                self.scribe.status.abort = true;
                self.world
                    .patch(rollout, json!({"status": {"abort": true}}))
                    .await
            }
            Deed::Scale(replicas) => {
                let patch = json!({"spec": {"replicas": replicas}});
                self.world.patch(&self.cast.set, patch).await
            }
            Deed::StopOperator(time) => {
                self.world.stop_operator();
                let back = "the operator is back".to_owned();
                self.due.push((later(now, time), Deed::StartOperator, back));
                Ok(())
            }
            Deed::StartOperator => {
                self.world.start_operator();
                Ok(())
            }
        }
    }

    /// Plays it to the end.
    async fn run(mut self) -> Result<Preview, Error> {
        let deadline = Duration::try_from(self.plan.deadline).unwrap_or_default();
        let patience = PATIENCE + deadline + longest_wait(&self.cast) + self.cast.min_ready();
        let horizon = later(self.now(), HORIZON + self.asked_to_wait());
        let outcome = loop {
            if let Some(outcome) = self.ended() {
                if outcome == Outcome::RolledBack {
                    // Pods that are back are waited for until they count as available.
                    self.scribe.last = self.scribe.last.max(self.scribe.arrived);
                }
                break outcome;
            }
            let limit = horizon.min(later(self.last_stir(), patience));
            if !self.turn(limit).await? || self.now() >= horizon {
                break match (self.scribe.status.phase.as_str(), &self.asked) {
                    ("Failed", _) => Outcome::Held,
                    (_, Some(_)) => Outcome::Waiting,
                    _ => Outcome::Stuck,
                };
            }
        };
        let end = self.scribe.last;
        if let (Outcome::Held, Some(at)) = (outcome, self.scribe.seconds(end)) {
            self.people.push(Person {
                at,
                step: self.scribe.step().map(|step| step + 1),
                command: self.command("abort"),
            });
        }
        self.scribe.tell(Happening::Ends { outcome }, end);
        if self.scribe.revision.update == self.scribe.revision.stable && !self.under_way {
            return Err(Error::Subject(format!(
                "the pods of StatefulSet {} run what it asks for already; nothing would be rolled",
                self.cast.subject.workload()
            )));
        }
        Ok(self.preview(outcome, end))
    }

    /// How long it takes at least, if every wait that was asked for comes true.
    fn asked_to_wait(&self) -> Duration {
        let pauses = self.plan.steps.iter().filter_map(|step| match step {
            Step::Pause(Some(time)) => Duration::try_from(time).ok(),
            _ => None,
        });
        let supposed = self.what_ifs.iter().filter_map(|what_if| match what_if.what {
            What::OperatorDown(time) => Some(time),
            // As often as there is a step to answer for, and once more.
            What::People(Some(time)) => Some(time.saturating_mul(self.plan.steps.len() as u32 + 1)),
            What::Pod {
                trouble: Trouble::ReadyAfter(time),
                ..
            } => Some(time.saturating_mul(check::MOST_PODS)),
            _ => None,
        });
        let pod = self.pace.ready_after + self.pace.stops_after + self.cast.min_ready();
        let pods = pod.saturating_mul(2 * check::MOST_PODS);
        pauses.chain(supposed).fold(pods, Duration::saturating_add)
    }

    /// When something last happened, or will for certain.
    fn last_stir(&self) -> Timestamp {
        let due = self.due.iter().map(|(at, ..)| *at).max();
        match (&self.asked, due) {
            // Measurements may go on and on beside the steps, and nobody comes all the same.
            (Some(_), None) => self.stirred,
            (_, due) => self.scribe.last.max(due.unwrap_or(self.scribe.last)),
        }
    }

    fn ended(&self) -> Option<Outcome> {
        let status = &self.scribe.status;
        if self.cast.subject.is_left_alone() {
            return self.scribe.is_rolled().then_some(Outcome::Successful);
        }
        if self.scribe.activity != Activity::Idle {
            return None;
        }
        if !self.under_way {
            // Without any pods there is nothing to take steps for.
            let taken = status.stable_revision.as_ref() == Some(&self.scribe.revision.update);
            return (taken && self.scribe.is_rolled()).then_some(Outcome::Successful);
        }
        match status.phase.as_str() {
            "Successful" if self.scribe.is_rolled() => Some(Outcome::Successful),
            "Successful" | "Failed" if self.scribe.is_well() => Some(Outcome::RolledBack),
            _ => None,
        }
    }

    /// What was supposed to be done at a step that was never reached.
    fn left_out(&self) -> impl Iterator<Item = &WhatIf> {
        let done = |said: String| {
            let mut entries = self.scribe.entries.iter();
            entries.any(|entry| matches!(&entry.what, Happening::Done { what_if } if *what_if == said))
        };
        let deeds = self.what_ifs.iter().filter(|what_if| deed(what_if).is_some());
        deeds.filter(move |what_if| !done(what_if.to_string()))
    }

    fn preview(mut self, outcome: Outcome, end: Timestamp) -> Preview {
        let pods = self.scribe.lanes(end);
        let mut assumptions = vec![self.pace.to_string()];
        assumptions.append(&mut self.cast.notes);
        assumptions.extend(
            self.left_out()
                .map(|what_if| format!("it does not come to {what_if}")),
        );
        Preview {
            rollout: self.cast.subject.title(),
            workload: format!("statefulset/{}", self.cast.subject.workload()),
            replicas: self.cast.replicas(),
            steps: titles(&self.plan, &self.cast),
            assumptions,
            what_if: self.what_ifs.iter().map(ToString::to_string).collect(),
            outcome,
            message: self.scribe.status.message.clone(),
            duration_seconds: self.scribe.seconds(end).unwrap_or_default(),
            waited_for_people_seconds: self.waited,
            most_unavailable: self.scribe.most_unavailable,
            people: self.people,
            entries: std::mem::take(&mut self.scribe.entries),
            pods,
            namespace: self.namespace,
        }
    }
}

/// The steps in words. Where pods go one after the other, they are called by their names.
fn titles(plan: &Plan, cast: &Cast) -> Vec<String> {
    if !plan.by_pod {
        return plan.steps.iter().map(|step| step.to_string()).collect();
    }
    let (set, after) = (cast.subject.workload(), cast.first_ordinal() + cast.replicas());
    let title = |(index, step): (usize, Step)| {
        let place = (index / 2 + 1) as u32;
        match step {
            Step::Analysis(_) if index + 1 == plan.steps.len() => "the gate after the last pod".to_owned(),
            Step::Analysis(_) => format!("the gate before pod {set}-{}", after.saturating_sub(place)),
            Step::Share(_) | Step::Pause(_) => format!("pod {set}-{}", after.saturating_sub(place)),
        }
    };
    plan.steps.iter().enumerate().map(title).collect()
}

fn too_much(seconds: Option<f64>) -> Error {
    let time = time(seconds.unwrap_or_default());
    Error::Subject(format!(
        "too much happens to be played: {MOST_CHANGES} changes until {time}; measure less often (interval), or shorten the pauses"
    ))
}

/// What somebody does about it, if it is anything to do.
fn deed(what_if: &WhatIf) -> Option<Deed> {
    match what_if.what {
        What::Scale(replicas) => Some(Deed::Scale(replicas)),
        What::OperatorDown(time) => Some(Deed::StopOperator(time)),
        What::Abort => Some(Deed::Abort),
        What::Pod { .. } | What::Metric { .. } | What::People(_) => None,
    }
}

/// Whether it happens before the operator has seen anything of the change.
fn begins_before(what_if: &WhatIf) -> bool {
    what_if.step.is_none() && matches!(what_if.what, What::OperatorDown(_))
}

/// So much later; the end of all time where that is no time any more.
fn later(now: Timestamp, time: Duration) -> Timestamp {
    let time = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
    now.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// The longest that the rollout or one of its metrics asks to wait.
fn longest_wait(cast: &Cast) -> Duration {
    let objects = std::iter::once(&cast.rollout).chain(&cast.templates);
    objects
        .map(|object| longest_in(&object["spec"]))
        .max()
        .unwrap_or_default()
}

fn longest_in(value: &Value) -> Duration {
    match value {
        Value::Object(fields) => {
            let waits = fields.iter().map(|(name, value)| match check::wait(value) {
                Some(time) if check::WAITS.contains(&name.as_str()) => time,
                _ => longest_in(value),
            });
            waits.max().unwrap_or_default()
        }
        Value::Array(values) => values.iter().map(longest_in).max().unwrap_or_default(),
        _ => Duration::ZERO,
    }
}
