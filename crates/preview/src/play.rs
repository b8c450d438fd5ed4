//! Runs the simulation: who acts when, until the rollout ends.

mod under_way;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use stateward_core::memory::{Activity, BackgroundRun};
use stateward_core::plan::{Plan, Step};

use crate::Error;
use crate::answers::Answers;
use crate::check;
use crate::pace::Pace;
use crate::preview::{Happening, Outcome, Person, Preview};
use crate::recorder::Recorder;
use crate::subject::{Fixture, METRIC_OF_JOB, Start, Subject};
use crate::text::time;
use crate::what_if::{Trouble, What, WhatIf};
use crate::world::World;

/// How long the simulation may continue beyond the configured waits.
const HORIZON: Duration = Duration::from_secs(30 * 24 * 3600);

/// The simulation stops after this many changes of objects: a metric that is measured every second of a month would take all day.
const MOST_CHANGES: u32 = 30_000;

/// How long nothing may change, beyond the configured waits, before the rollout counts as stuck.
const PATIENCE: Duration = Duration::from_secs(2 * 3600);

/// How long the simulated StatefulSet controller and operator take to observe a template.
const AT_ONCE: Duration = Duration::from_millis(1);

/// How long the stable pods have been available when the simulation begins.
const SETTLED_FOR: Duration = Duration::from_secs(600);

/// The rollout of a template that differs from the stable one begins well before this.
const BEGINS_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// Simulates a rollout in virtual time and returns the preview. `now` is the real time at which it begins, for a rollout in progress;
/// `program` is how the user calls us, with the flags for cluster and namespace, for the suggested commands.
///
/// Blocks for the computation, a fraction of a second, however much time is simulated.
pub fn play(
    subject: &Subject,
    what_ifs: &[WhatIf],
    pace: Pace,
    now: Timestamp,
    program: &str,
) -> Result<Preview, Error> {
    let namespace = subject.namespace().unwrap_or("default").to_owned();
    let fixture = subject.fixture(now, &namespace)?;
    check::bounds(&fixture, &pace)?;
    let plan = fixture.plan()?;
    check::what_ifs(what_ifs, &fixture, &plan)?;
    let (what_ifs, program) = (without_repetitions(what_ifs), program.to_owned());
    // A thread of its own: the caller may be in a runtime with real time.
    let played = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .map_err(|error| Error::Broken(error.to_string()))?;
        runtime.block_on(async {
            let mut play = Play::open(fixture, plan, what_ifs, pace, &namespace, program).await?;
            play.get_there().await?;
            play.run().await
        })
    });
    played
        .join()
        .unwrap_or_else(|_| Err(Error::Broken("it has panicked".into())))
}

/// Removes duplicates.
fn without_repetitions(what_ifs: &[WhatIf]) -> Vec<WhatIf> {
    let mut once: Vec<WhatIf> = Vec::new();
    for what_if in what_ifs {
        if !once.contains(what_if) {
            once.push(what_if.clone());
        }
    }
    once
}

/// An action at a given time.
#[derive(Clone, Debug, PartialEq)]
enum ScheduledAction {
    Promote,
    Resume,
    Abort,
    Scale(u32),
    StopOperator(Duration),
    StartOperator,
}

impl ScheduledAction {
    /// Whether it answers a wait for a user.
    fn is_an_answer(&self) -> bool {
        matches!(self, Self::Promote | Self::Resume)
    }
}

struct Play {
    world: World,
    recorder: Recorder,
    fixture: Fixture,
    plan: Plan,
    what_ifs: Vec<WhatIf>,
    pace: Pace,
    namespace: String,
    program: String,
    /// Unordered.
    due: Vec<(Timestamp, ScheduledAction, String)>,
    /// The last step that was handled.
    at: Option<usize>,
    /// The wait that was last reported.
    asked: Option<Waiting>,
    /// When it was reported.
    asked_at: Timestamp,
    /// When a wait was last reported or a user last acted.
    stirred: Timestamp,
    people: Vec<Person>,
    waited: f64,
    under_way: bool,
    changes: u32,
}

/// A wait for a user.
#[derive(Clone, Debug, PartialEq)]
struct Waiting {
    step: Option<usize>,
    verb: &'static str,
    action: ScheduledAction,
}

impl Play {
    async fn open(
        fixture: Fixture,
        plan: Plan,
        what_ifs: Vec<WhatIf>,
        pace: Pace,
        namespace: &str,
        program: String,
    ) -> Result<Self, Error> {
        let answers = Answers::new(&what_ifs, &fixture.subject);
        let world = World::open(namespace, pace.clone(), answers).await?;
        let titles = titles(&plan, &fixture);
        let recorder = Recorder::new(
            fixture.subject.clone(),
            namespace,
            fixture.first_ordinal(),
            titles,
        );
        Ok(Self {
            world,
            recorder,
            fixture,
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

    /// Simulates everything up to where the preview begins.
    async fn get_there(&mut self) -> Result<(), Error> {
        self.world.pace_set(self.fixture.subject.workload());
        self.world.create(&self.fixture.set).await?;
        for template in &self.fixture.templates {
            self.world.create(template).await?;
        }
        if !self.pods_are_ready().await? {
            return Err(Error::Broken(format!(
                "the pods of StatefulSet {} do not become Ready",
                self.fixture.subject.workload()
            )));
        }
        self.world.start_operator();
        self.world.create(&self.fixture.rollout).await?;
        // The stable pods have existed for long enough to count as available.
        self.let_pass(SETTLED_FOR + self.fixture.min_ready()).await?;
        let status = &self.recorder.status;
        let held = status.stable_revision.is_some() || self.fixture.subject.is_left_alone();
        let taken_on = self.recorder.observed && held && status.phase != "Failed";
        if !taken_on {
            return Err(Error::NotRolled {
                what: self.fixture.subject.title(),
                why: self.recorder.status.message.clone(),
            });
        }
        let (what_ifs, stable) = (
            std::mem::take(&mut self.what_ifs),
            self.recorder.revision.update.clone(),
        );
        self.recorder.revision.stable.clone_from(&stable);
        if self.fixture.start == Start::Beginning {
            self.what_ifs = what_ifs;
            self.pause_if_asked().await?;
            self.recorder.begin(self.now());
            self.before_the_first_step().await?;
            self.change().await?;
            if self.fixture.subject.is_left_alone() {
                // There are no further steps that it could wait for.
                self.suppose(|what_if| what_if.step.is_none() && !begins_before(what_if));
            }
        } else {
            let replaced = self.fixture.replaced.clone();
            let rolled = replaced.as_ref().unwrap_or(&self.fixture.after);
            self.world.retemplate(&self.fixture.set, rolled).await?;
            self.reach_step().await?;
            self.what_ifs = what_ifs;
            self.pause_if_asked().await?;
            if self.fixture.overtaken {
                self.overtake().await?;
            }
            self.recorder.begin(self.now());
            // The state exists already: the preview begins there.
            (self.at, self.asked) = (None, None);
            self.people.clear();
            self.waited = 0.0;
            self.due.clear();
            self.before_the_first_step().await?;
            if self.fixture.overtaken {
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

    /// Waits for the pods of the previous version. Returns `false` if they do not become Ready.
    async fn pods_are_ready(&mut self) -> Result<bool, Error> {
        let one = self.pace.ready_after + self.fixture.min_ready() + Duration::from_secs(3600);
        let limit = later(self.now(), one.saturating_mul(self.fixture.replicas() + 1));
        while !self.recorder.is_settled() {
            if !self.watch(limit).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Applies the what-ifs that take effect before the operator acts.
    async fn before_the_first_step(&mut self) -> Result<(), Error> {
        let first = self.what_ifs.iter().filter(|what_if| begins_before(what_if));
        let actions: Vec<_> = first
            .filter_map(|what_if| Some((action(what_if)?, what_if.to_string())))
            .collect();
        for (action, said) in actions {
            self.perform(action, said).await?;
        }
        Ok(())
    }

    async fn pause_if_asked(&mut self) -> Result<(), Error> {
        if self.verb_of_the_gate().is_some() {
            let note =
                "what is measured at this step has not been good; once somebody says so, it is measured anew";
            self.fixture.notes.push(note.into());
        }
        if self.fixture.subject.is_paused() || self.verb_of_the_gate().is_some() {
            let patch = json!({"spec": {"paused": true}});
            self.world.patch(&self.fixture.rollout, patch).await?;
            self.let_pass(Duration::from_secs(1)).await?;
        }
        Ok(())
    }

    /// Changes the template.
    async fn change(&mut self) -> Result<(), Error> {
        self.world
            .retemplate(&self.fixture.set, &self.fixture.after)
            .await
    }

    fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    /// Lets time pass, and records what happens.
    async fn let_pass(&mut self, time: Duration) -> Result<(), Error> {
        let until = later(self.now(), time);
        while self.watch(until).await? {}
        Ok(())
    }

    /// Records the next event. Returns `false` if there is none until `limit`.
    async fn watch(&mut self, limit: Timestamp) -> Result<bool, Error> {
        let clock = self.world.clock.clone();
        tokio::select! {
            biased;
            Some(commit) = self.world.commits.recv() => {
                let now = clock.now();
                self.recorder.note(&commit, now)?;
                Ok(true)
            }
            () = clock.sleep_until(limit) => Ok(false),
        }
    }

    /// Waits for the next event or action, and handles it. Returns `false` if there is none until `limit`.
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
                    return Err(too_much(self.recorder.seconds(now)));
                }
                if &*commit.resource == "jobs.batch" && !commit.deleted {
                    let metric = commit.object["metadata"]["annotations"][METRIC_OF_JOB].as_str();
                    self.world.run_job(&commit.name, metric);
                }
                let before = self.recorder.revision.update.clone();
                self.recorder.note(&commit, now)?;
                if self.recorder.revision.update != before {
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
                for (_, action, said) in now_due {
                    self.perform(action, said).await?;
                }
                Ok(true)
            }
        }
    }

    /// Programs the pods of the new version as the what-ifs say.
    fn supposed_pods(&self) {
        let revision = &self.recorder.revision;
        if revision.update == revision.stable {
            return;
        }
        let supposed = self.what_ifs.iter().filter_map(|what_if| match what_if.what {
            What::Pod { ordinal, trouble } => Some((ordinal, trouble)),
            _ => None,
        });
        let mut supposed: Vec<_> = supposed.collect();
        // A what-if about one pod wins over one about all.
        supposed.sort_by_key(|(ordinal, _)| *ordinal);
        for (ordinal, trouble) in supposed {
            let set = self.fixture.subject.workload();
            self.world.trouble(set, &revision.update, ordinal, trouble);
        }
    }

    /// Schedules these what-ifs now.
    fn suppose(&mut self, these: impl Fn(&WhatIf) -> bool) {
        let (now, due) = (self.now(), self.what_ifs.iter().filter(|what_if| these(what_if)));
        let actions = due.filter_map(|what_if| Some((now, action(what_if)?, what_if.to_string())));
        self.due.extend(actions);
    }

    /// Schedules what follows from the rollout's current step.
    fn react(&mut self) {
        let now = self.now();
        let step = self.recorder.step();
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
            // Answers to an earlier wait are obsolete.
            self.due.retain(|(_, action, _)| !action.is_an_answer());
            if let Some(waiting) = waiting {
                self.ask(waiting, now);
            }
        }
    }

    /// The command that a user must give, if any.
    fn waiting(&self) -> Option<Waiting> {
        let Activity::Rolling(attempt) = &self.recorder.activity else {
            return None;
        };
        // No user is needed for a rollout that is being aborted.
        if self.recorder.status.abort
            || self
                .due
                .iter()
                .any(|(_, action, _)| *action == ScheduledAction::Abort)
        {
            return None;
        }
        let step = attempt.step.0 as usize;
        let of = |verb, action| {
            let step = Some(step);
            Some(Waiting { step, verb, action })
        };
        let status = &self.recorder.status;
        if attempt.paused_by_user {
            let gate = self.verb_of_the_gate();
            let gate = gate.filter(|_| !self.fixture.subject.is_paused());
            return of(gate.unwrap_or("resume"), ScheduledAction::Resume);
        }
        // A timed pause ends by itself, unless a background analysis is inconclusive.
        let ends = attempt.paused_at_step && matches!(self.plan.steps.get(step), Some(Step::Pause(Some(_))));
        let stands = attempt.awaits_a_word() && !status.pause_conditions.is_empty();
        // An answer to a background analysis may come after the deadline, and the operator accepts it all the same.
        let heard = status.phase == "Paused" || matches!(attempt.background, BackgroundRun::InDoubt(_));
        if stands && !ends && heard {
            return of("promote", ScheduledAction::Promote);
        }
        None
    }

    /// Reports that a user is needed, who acts if the what-ifs say so.
    fn ask(&mut self, waiting: Waiting, now: Timestamp) {
        let command = self.command(waiting.verb);
        if let Some(at) = self.recorder.seconds(now) {
            self.people.push(Person {
                at,
                step: waiting.step.map(|step| step + 1),
                command: command.clone(),
            });
        }
        self.recorder.tell(
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
            self.due
                .push((later(now, after), waiting.action.clone(), command));
        }
        self.asked = Some(waiting);
        (self.asked_at, self.stirred) = (now, now);
    }

    fn command(&self, verb: &str) -> String {
        let command = format!("{} {verb} {}", self.program, self.fixture.subject.name());
        // The version in progress is known; with it the command, typed later, cannot affect the next version.
        let under_way = matches!(self.fixture.start, Start::Step(..)) && self.fixture.replaced.is_none();
        match self
            .fixture
            .subject
            .status()
            .updated_revision
            .filter(|_| under_way)
        {
            Some(revision) => format!("{command} --revision {revision}"),
            None => command,
        }
    }

    async fn perform(&mut self, action: ScheduledAction, said: String) -> Result<(), Error> {
        let now = self.now();
        if action.is_an_answer() {
            self.waited += now.duration_since(self.asked_at).as_secs_f64().round();
        }
        self.stirred = now;
        self.recorder.tell(Happening::Done { what_if: said }, now);
        let rollout = &self.fixture.rollout;
        match action {
            ScheduledAction::Promote => {
                let patch = json!({"status": {"pauseConditions": null}});
                self.world.patch(rollout, patch).await
            }
            ScheduledAction::Resume => {
                self.world
                    .patch(rollout, json!({"spec": {"paused": false}}))
                    .await
            }
            ScheduledAction::Abort => {
                self.recorder.status.abort = true;
                self.world
                    .patch(rollout, json!({"status": {"abort": true}}))
                    .await
            }
            ScheduledAction::Scale(replicas) => {
                let patch = json!({"spec": {"replicas": replicas}});
                self.world.patch(&self.fixture.set, patch).await
            }
            ScheduledAction::StopOperator(time) => {
                self.world.stop_operator();
                let back = "the operator is back".to_owned();
                self.due
                    .push((later(now, time), ScheduledAction::StartOperator, back));
                Ok(())
            }
            ScheduledAction::StartOperator => {
                self.world.start_operator();
                Ok(())
            }
        }
    }

    /// Runs the simulation to its end.
    async fn run(mut self) -> Result<Preview, Error> {
        let deadline = Duration::try_from(self.plan.deadline).unwrap_or_default();
        let patience = PATIENCE + deadline + longest_wait(&self.fixture) + self.fixture.min_ready();
        let horizon = later(self.now(), HORIZON + self.asked_to_wait());
        let outcome = loop {
            if let Some(outcome) = self.ended() {
                if outcome == Outcome::RolledBack {
                    // Rolled-back pods are waited for until they count as available.
                    self.recorder.last = self.recorder.last.max(self.recorder.arrived);
                }
                break outcome;
            }
            let limit = horizon.min(later(self.last_stir(), patience));
            if !self.turn(limit).await? || self.now() >= horizon {
                break match (self.recorder.status.phase.as_str(), &self.asked) {
                    ("Failed", _) => Outcome::Held,
                    (_, Some(_)) => Outcome::Waiting,
                    _ => Outcome::Stuck,
                };
            }
        };
        let end = self.recorder.last;
        if let (Outcome::Held, Some(at)) = (outcome, self.recorder.seconds(end)) {
            self.people.push(Person {
                at,
                step: self.recorder.step().map(|step| step + 1),
                command: self.command("abort"),
            });
        }
        self.recorder.tell(Happening::Ends { outcome }, end);
        if self.recorder.revision.update == self.recorder.revision.stable && !self.under_way {
            return Err(Error::Subject(format!(
                "the pods of StatefulSet {} run what it asks for already; nothing would be rolled",
                self.fixture.subject.workload()
            )));
        }
        Ok(self.preview(outcome, end))
    }

    /// The minimum duration if every configured wait takes place.
    fn asked_to_wait(&self) -> Duration {
        let pauses = self.plan.steps.iter().filter_map(|step| match step {
            Step::Pause(Some(time)) => Duration::try_from(time).ok(),
            _ => None,
        });
        let supposed = self.what_ifs.iter().filter_map(|what_if| match what_if.what {
            What::OperatorDown(time) => Some(time),
            // An answer for every step, and one more.
            What::People(Some(time)) => Some(time.saturating_mul(self.plan.steps.len() as u32 + 1)),
            What::Pod {
                trouble: Trouble::ReadyAfter(time),
                ..
            } => Some(time.saturating_mul(check::MOST_PODS)),
            _ => None,
        });
        let pod = self.pace.ready_after + self.pace.stops_after + self.fixture.min_ready();
        let pods = pod.saturating_mul(2 * check::MOST_PODS);
        pauses.chain(supposed).fold(pods, Duration::saturating_add)
    }

    /// When something last happened, or certainly will.
    fn last_stir(&self) -> Timestamp {
        let due = self.due.iter().map(|(at, ..)| *at).max();
        match (&self.asked, due) {
            // A background analysis may measure on and on while no user acts.
            (Some(_), None) => self.stirred,
            (_, due) => self.recorder.last.max(due.unwrap_or(self.recorder.last)),
        }
    }

    fn ended(&self) -> Option<Outcome> {
        let status = &self.recorder.status;
        if self.fixture.subject.is_left_alone() {
            return self.recorder.is_rolled().then_some(Outcome::Successful);
        }
        if self.recorder.activity != Activity::Idle {
            return None;
        }
        if !self.under_way {
            // Without pods there is no reason to take steps.
            let taken = status.stable_revision.as_ref() == Some(&self.recorder.revision.update);
            return (taken && self.recorder.is_rolled()).then_some(Outcome::Successful);
        }
        match status.phase.as_str() {
            "Successful" if self.recorder.is_rolled() => Some(Outcome::Successful),
            "Successful" | "Failed" if self.recorder.is_well() => Some(Outcome::RolledBack),
            _ => None,
        }
    }

    /// The what-ifs of steps that were never reached.
    fn left_out(&self) -> impl Iterator<Item = &WhatIf> {
        let done = |said: String| {
            let mut entries = self.recorder.entries.iter();
            entries.any(|entry| matches!(&entry.what, Happening::Done { what_if } if *what_if == said))
        };
        let actions = self.what_ifs.iter().filter(|what_if| action(what_if).is_some());
        actions.filter(move |what_if| !done(what_if.to_string()))
    }

    fn preview(mut self, outcome: Outcome, end: Timestamp) -> Preview {
        let pods = self.recorder.lanes(end);
        let mut assumptions = vec![self.pace.to_string()];
        assumptions.append(&mut self.fixture.notes);
        assumptions.extend(
            self.left_out()
                .map(|what_if| format!("it does not come to {what_if}")),
        );
        Preview {
            rollout: self.fixture.subject.title(),
            workload: format!("statefulset/{}", self.fixture.subject.workload()),
            replicas: self.fixture.replicas(),
            steps: titles(&self.plan, &self.fixture),
            assumptions,
            what_if: self.what_ifs.iter().map(ToString::to_string).collect(),
            outcome,
            message: self.recorder.status.message.clone(),
            duration_seconds: self.recorder.seconds(end).unwrap_or_default(),
            waited_for_people_seconds: self.waited,
            most_unavailable: self.recorder.most_unavailable,
            people: self.people,
            entries: std::mem::take(&mut self.recorder.entries),
            pods,
            namespace: self.namespace,
        }
    }
}

/// The steps in words. The steps of a PhasedRollout are named after their pods.
fn titles(plan: &Plan, fixture: &Fixture) -> Vec<String> {
    if !plan.by_pod {
        return plan.steps.iter().map(|step| step.to_string()).collect();
    }
    let (set, after) = (
        fixture.subject.workload(),
        fixture.first_ordinal() + fixture.replicas(),
    );
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

/// The user action of a what-if, if it is one.
fn action(what_if: &WhatIf) -> Option<ScheduledAction> {
    match what_if.what {
        What::Scale(replicas) => Some(ScheduledAction::Scale(replicas)),
        What::OperatorDown(time) => Some(ScheduledAction::StopOperator(time)),
        What::Abort => Some(ScheduledAction::Abort),
        What::Pod { .. } | What::Metric { .. } | What::People(_) => None,
    }
}

/// Whether it takes effect before the operator has observed the change.
fn begins_before(what_if: &WhatIf) -> bool {
    what_if.step.is_none() && matches!(what_if.what, What::OperatorDown(_))
}

/// `now` plus `time`, or the maximum timestamp on overflow.
fn later(now: Timestamp, time: Duration) -> Timestamp {
    let time = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
    now.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// The longest wait in the rollout or one of its metrics.
fn longest_wait(fixture: &Fixture) -> Duration {
    let objects = std::iter::once(&fixture.rollout).chain(&fixture.templates);
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
