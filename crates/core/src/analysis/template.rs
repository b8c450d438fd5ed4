//! Composes the spec of an AnalysisRun from the templates that a rollout references.

use std::collections::BTreeMap;

use serde_json::Value;
use stateward_api::Problem;
use stateward_api::analysis::{AnalysisRunSpec, AnalysisTemplateSpec, Arg, FieldRef, TemplateRef};
use stateward_api::analysis::{address, validate};
use stateward_api::rolloutplugin::{Analysis, Argument, ArgumentSource};

use super::args::{self, FillError, Sources, Values};
use super::{judge, names};

/// How deep templates may reference others.
const DEEPEST: usize = 16;

/// Looks up templates by name.
pub trait Templates {
    /// The template, or `None` if it does not exist.
    fn find(&self, template: &TemplateRef) -> Option<AnalysisTemplateSpec>;

    /// Why it cannot be used, whether it exists or not.
    fn refuses(&self, _template: &TemplateRef) -> Option<String> {
        None
    }

    /// Why the pod template of a Job, at the path `at`, is not allowed where these templates are used.
    fn refuses_job(&self, _template: &Value, _at: &str) -> Option<Problem> {
        None
    }

    /// Why an address is never queried, as far as that is known without resolving its host.
    fn refuses_address(&self, _address: &str) -> Option<String> {
        None
    }
}

impl Templates for BTreeMap<(bool, String), AnalysisTemplateSpec> {
    fn find(&self, template: &TemplateRef) -> Option<AnalysisTemplateSpec> {
        self.get(&(template.cluster_scope, template.template_name.clone()))
            .cloned()
    }
}

/// Whether a run must complete by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// It is a step, and the next step waits for it.
    Step,
    /// It runs in the background for as long as the rollout lasts.
    Background,
}

/// All problems of the analysis at `path` that can be found before it runs. `object` builds the whole rollout as JSON; it is called
/// only if an arg reads a field of it.
pub fn problems(
    analysis: &Analysis,
    path: &str,
    span: Span,
    templates: &dyn Templates,
    object: &dyn Fn() -> Value,
) -> Vec<Problem> {
    let mut composed = Composed::default();
    composed.gather(analysis, path, templates);
    let given = analysis.args.iter().any(reads_a_field);
    let object = if given || composed.spec.args.iter().any(|arg| field_of(arg).is_some()) {
        object()
    } else {
        Value::Null
    };
    let sources = Sources {
        object: &object,
        stable: Some(""),
        latest: Some(""),
    };
    let mut values = composed.read_args(analysis, path, sources, When::Before);
    // The revisions are not known yet.
    values.retain(|name, _| {
        let mut given = analysis.args.iter().filter(|arg| arg.name == *name);
        given.all(|arg| arg.value.is_some() || reads_a_field(arg))
    });
    composed.check(analysis, path, span, templates, &values);
    composed.problems
}

/// The spec of a run for an analysis.
pub fn compose(
    analysis: &Analysis,
    path: &str,
    span: Span,
    templates: &dyn Templates,
    sources: Sources<'_>,
) -> Result<AnalysisRunSpec, Vec<Problem>> {
    let mut composed = Composed::default();
    composed.gather(analysis, path, templates);
    let values = composed.read_args(analysis, path, sources, When::Now);
    composed.check(analysis, path, span, templates, &values);
    if !composed.problems.is_empty() {
        return Err(composed.problems);
    }
    let mut spec = composed.spec;
    for arg in &mut spec.args {
        if let Some(value) = values.get(&arg.name) {
            (arg.value, arg.value_from) = (Some(value.clone()), None);
        }
    }
    spec.dry_run.extend(analysis.dry_run.clone());
    spec.measurement_retention
        .splice(0..0, analysis.measurement_retention.clone());
    Ok(spec)
}

/// When args are read: for validation, or for a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Before,
    Now,
}

fn reads_a_field(arg: &Argument) -> bool {
    let source = arg.value_from.as_ref();
    arg.value.is_none() && source.is_some_and(|source| source.field_ref.is_some())
}

/// The field of the rollout that an arg of a template reads.
fn field_of(arg: &Arg) -> Option<FieldRef> {
    arg.value_from.as_ref()?.field_ref.clone()
}

/// The metrics of a run with the args resolved that have values of their own, or the problems with them. Args from Secrets stay
/// unresolved until they are needed.
pub fn filled(spec: &AnalysisRunSpec) -> Result<AnalysisRunSpec, Vec<Problem>> {
    let values: Values = spec
        .args
        .iter()
        .filter_map(|arg| Some((arg.name.clone(), arg.value.clone()?)))
        .collect();
    // Each metric is inspected, so their number is limited first.
    let problems = validate::count_problems(spec.metrics.len(), "spec.metrics");
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut problems = Vec::new();
    let mut filled = spec.clone();
    let mut room = args::LARGEST_RUN;
    for (index, metric) in filled.metrics.iter_mut().enumerate() {
        match args::fill_within(metric, &values, &mut room) {
            Ok(full) => *metric = full,
            Err(error) => {
                let error = fill_problem(&error, &format!("spec.metrics[{index}]"));
                return Err(vec![error]);
            }
        }
        for name in args::open(metric) {
            let arg = spec.args.iter().find(|arg| arg.name == name);
            let secret = arg.and_then(|arg| arg.value_from.as_ref()?.secret_key_ref.as_ref());
            let message = match secret {
                None => format!("asks for {{{{args.{name}}}}}, which has no value"),
                Some(_) if metric.provider.job.is_some() => {
                    format!("asks for {{{{args.{name}}}}}, {NOT_IN_A_JOB}")
                }
                Some(_) => continue,
            };
            problems.push(Problem {
                field: format!("spec.metrics[{index}]"),
                message,
            });
        }
    }
    if let Err(wrong) = names::resolve(&mut filled, "spec") {
        problems.extend(wrong);
    }
    problems.extend(validate::problems(&filled.metrics, "spec.metrics"));
    problems.extend(judge::problems(&filled.metrics, "spec.metrics"));
    if problems.is_empty() {
        Ok(filled)
    } else {
        Err(problems)
    }
}

/// The manifest of a Job is visible to everyone who may read Jobs.
const NOT_IN_A_JOB: &str =
    "which is a Secret's: give it to the Job's pod as an environment variable with valueFrom.secretKeyRef";

/// The problem that prevents resolving the args of the metric at `path`.
fn fill_problem(error: &FillError, path: &str) -> Problem {
    match error {
        FillError::Field { field, .. } => {
            let whole = error.to_string();
            let message = whole.strip_prefix(field.as_str()).unwrap_or(&whole);
            Problem {
                field: format!("{path}.{field}"),
                message: message.trim_start_matches(": ").to_owned(),
            }
        }
        FillError::Run | FillError::NoMetric(_) => Problem {
            field: path.to_owned(),
            message: error.to_string(),
        },
    }
}

/// How many templates an analysis may use, and their total size.
const MOST_TEMPLATES: usize = 100;
const LARGEST_TEMPLATES: usize = args::LARGEST_RUN;

/// The size of a value as JSON, without allocating the JSON.
fn size(value: &impl serde::Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

/// The composed templates, and their problems.
#[derive(Default)]
struct Composed {
    spec: AnalysisRunSpec,
    /// The origin of each metric: `….templates[0]: AnalysisTemplate errors: metrics[1]`.
    origins: Vec<String>,
    taken: Vec<TemplateRef>,
    /// Their total size.
    bytes: usize,
    problems: Vec<Problem>,
}

impl Composed {
    fn problem(&mut self, field: &str, message: impl Into<String>) {
        self.problems.push(Problem {
            field: field.into(),
            message: message.into(),
        });
    }

    /// The same, but each message only once.
    fn refuse(&mut self, field: &str, message: String) {
        if !self.problems.iter().any(|problem| problem.message == message) {
            self.problem(field, message);
        }
    }

    /// The values of the args: those that are given, and those that a template itself reads from the rollout unless the rollout
    /// overrides them.
    fn read_args(&mut self, analysis: &Analysis, path: &str, sources: Sources<'_>, when: When) -> Values {
        // Fields of the status may be set later.
        let later = |source: Option<&FieldRef>| {
            when == When::Before && source.is_some_and(|field| field.field_path.starts_with("status"))
        };
        let mut read = Vec::new();
        for (index, arg) in analysis.args.iter().enumerate() {
            let source = arg.value_from.as_ref();
            if !later(source.and_then(|source| source.field_ref.as_ref())) {
                read.push((arg.clone(), format!("{path}.args[{index}]")));
            }
        }
        for arg in &self.spec.args {
            let given = analysis.args.iter().any(|given| given.name == arg.name);
            let Some(field) = field_of(arg).filter(|field| !given && !later(Some(field))) else {
                continue;
            };
            let source = ArgumentSource {
                field_ref: Some(field),
                pod_template_hash_value: None,
            };
            let of_template = Argument {
                name: arg.name.clone(),
                value: None,
                value_from: Some(source),
            };
            read.push((of_template, format!("{path}.templates: args {}", arg.name)));
        }
        let mut values = Values::new();
        for (arg, path) in read {
            match args::given(&arg, &path, sources) {
                Ok(value) => _ = values.insert(arg.name, value),
                Err(problem) => self.problems.push(problem),
            }
        }
        values
    }

    fn gather(&mut self, analysis: &Analysis, path: &str, templates: &dyn Templates) {
        if let Some(metadata) = &analysis.analysis_run_metadata {
            let field = format!("{path}.analysisRunMetadata");
            let told = validate::metadata_problems(&metadata.labels, &metadata.annotations, &field);
            self.problems.extend(told);
        }
        if analysis.templates.is_empty() {
            self.problem(&format!("{path}.templates"), "is empty; it must name a template");
        }
        for (index, template) in analysis.templates.iter().enumerate() {
            let path = format!("{path}.templates[{index}]");
            self.take(template, &path, templates, 0);
        }
    }

    /// Adds a template once, and then the templates that it references.
    fn take(&mut self, template: &TemplateRef, path: &str, templates: &dyn Templates, depth: usize) {
        if self.taken.contains(template) {
            return;
        }
        if depth > DEEPEST {
            return self.refuse(path, "takes in templates that take in others too deep".into());
        }
        if self.taken.len() >= MOST_TEMPLATES {
            return self.refuse(path, format!("takes in more than {MOST_TEMPLATES} templates"));
        }
        self.taken.push(template.clone());
        let kind = if template.cluster_scope {
            "ClusterAnalysisTemplate"
        } else {
            "AnalysisTemplate"
        };
        let name = &template.template_name;
        if let Some(why) = templates.refuses(template) {
            return self.problem(
                &format!("{path}.templateName"),
                format!("{kind} {name} cannot be read: {why}"),
            );
        }
        let Some(found) = templates.find(template) else {
            return self.problem(
                &format!("{path}.templateName"),
                format!("there is no {kind} {name}"),
            );
        };
        self.bytes = self.bytes.saturating_add(size(&found));
        if self.bytes > LARGEST_TEMPLATES {
            let message = format!("takes in templates of more than {LARGEST_TEMPLATES} bytes");
            return self.refuse(path, message);
        }
        let AnalysisTemplateSpec {
            metrics,
            args,
            dry_run,
            measurement_retention,
            templates: others,
        } = found;
        let others_have = self.spec.metrics.len();
        for (index, metric) in metrics.into_iter().enumerate() {
            let mut taken = self.spec.metrics.iter();
            let whose = match taken.position(|taken| taken.name == metric.name) {
                None => {
                    self.origins
                        .push(format!("{path}: {kind} {name}: metrics[{index}]"));
                    self.spec.metrics.push(metric);
                    continue;
                }
                Some(place) if place < others_have => "as another template has",
                Some(_) => "twice",
            };
            let message = format!("{kind} {name} has the metric {:?}, {whose}", metric.name);
            self.problem(path, message);
        }
        for arg in args {
            self.take_arg(arg, path);
        }
        self.spec.dry_run.extend(dry_run);
        self.spec.measurement_retention.extend(measurement_retention);
        for other in &others {
            self.take(other, path, templates, depth + 1);
        }
    }

    fn take_arg(&mut self, arg: Arg, path: &str) {
        let Some(known) = self.spec.args.iter_mut().find(|known| known.name == arg.name) else {
            return self.spec.args.push(arg);
        };
        let silent = |arg: &Arg| arg.value.is_none() && arg.value_from.is_none();
        if silent(known) {
            *known = arg;
        } else if !silent(&arg) && *known != arg {
            let name = arg.name;
            self.problem(path, format!("the arg {name:?} has two different values"));
        }
    }

    /// Validates the composed metrics with these values and their own defaults. Args whose values come later stay unresolved.
    fn check(
        &mut self,
        analysis: &Analysis,
        path: &str,
        span: Span,
        templates: &dyn Templates,
        values: &Values,
    ) {
        let mut known = values.clone();
        let mut missing = Vec::new();
        for arg in &self.spec.args {
            let given = analysis.args.iter().find(|given| given.name == arg.name);
            let value = given.and_then(|given| given.value.clone());
            match value.or_else(|| arg.value.clone().filter(|_| given.is_none())) {
                Some(value) => _ = known.entry(arg.name.clone()).or_insert(value),
                None if given.is_some() || arg.value_from.is_some() => {}
                None => missing.push(arg.name.clone()),
            }
        }
        for name in &missing {
            self.problem(
                &format!("{path}.args"),
                format!("the template needs the arg {name:?}, and no value is given for it"),
            );
        }
        let field = format!("{path}.templates");
        let several = validate::count_problems(self.spec.metrics.len(), &field);
        if self.spec.metrics.len() > validate::MOST_METRICS {
            return self.problems.extend(several);
        }
        let mut metrics = self.spec.metrics.clone();
        let mut room = args::LARGEST_RUN;
        for (metric, origin) in metrics.iter_mut().zip(&self.origins) {
            match args::fill_within(metric, &known, &mut room) {
                Ok(full) => *metric = full,
                Err(error) => return self.problems.push(fill_problem(&error, origin)),
            }
        }
        for metric in &metrics {
            for name in args::open(metric) {
                let arg = self.spec.args.iter().find(|arg| arg.name == name);
                let secret = arg.and_then(|arg| arg.value_from.as_ref()?.secret_key_ref.as_ref());
                let why = match (arg, secret) {
                    (None, _) => "which is no arg of its template",
                    (Some(_), Some(_)) if metric.provider.job.is_some() => NOT_IN_A_JOB,
                    (Some(_), _) => continue,
                };
                let metric = metric.name.clone();
                self.problem(
                    &field,
                    format!("the metric {metric:?} asks for {{{{args.{name}}}}}, {why}"),
                );
            }
            let endless = metric.effective_count().is_none() && metric.successes_wanted().is_none();
            if span == Span::Step
                && endless
                && metric
                    .count
                    .as_ref()
                    .is_none_or(|count| validate::whole_number(count).is_some())
            {
                let name = metric.name.clone();
                self.problem(
                    &field,
                    format!(
                        "the metric {name:?} has an interval and no count: a step would never end; give it a count"
                    ),
                );
            }
        }
        let mut all = self.spec.clone();
        all.dry_run.extend(analysis.dry_run.clone());
        all.measurement_retention
            .extend(analysis.measurement_retention.clone());
        self.problems.extend(names::problems(&all, path));
        if !metrics.is_empty() || self.problems.is_empty() {
            self.problems.extend(several);
        }
        let mut room = judge::PATTERNS;
        for (metric, origin) in metrics.iter().zip(&self.origins) {
            self.problems.extend(validate::metric_problems(metric, origin));
            self.problems
                .extend(judge::metric_problems(metric, origin, &mut room));
            for (field, url) in address::addresses(metric) {
                let refusal = templates.refuses_address(url);
                self.problems.extend(refusal.map(|message| Problem {
                    field: format!("{origin}.provider.{field}"),
                    message,
                }));
            }
            if let Some(job) = &metric.provider.job {
                let at = format!("{origin}.provider.job.spec.template");
                let refusal = templates.refuses_job(&job.spec["template"], &at);
                // A field whose arg has no value yet is checked again when the Job is created.
                let settled = |refusal: &Problem| !refusal.message.contains("{{args.");
                self.problems.extend(refusal.filter(settled));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    type Known = BTreeMap<(bool, String), AnalysisTemplateSpec>;

    fn known(templates: Value) -> Known {
        let templates = templates.as_object().unwrap().clone().into_iter();
        let spec = |(name, spec): (String, Value)| {
            let cluster = name.starts_with("cluster");
            ((cluster, name), serde_json::from_value(spec).unwrap())
        };
        templates.map(spec).collect()
    }

    fn metric(name: &str, patch: Value) -> Value {
        let mut metric = json!({"name": name, "provider": {"prometheus": {"query": "up"}}});
        json_patch::merge(&mut metric, &patch);
        metric
    }

    fn analysis(json: Value) -> Analysis {
        serde_json::from_value(json).unwrap()
    }

    fn told(known: &Known, of: Value, span: Span) -> Vec<String> {
        let object = || json!({"metadata": {"name": "db", "labels": {"team": "prod"}}});
        problems(&analysis(of), "a", span, known, &object)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    const SOURCES: Sources<'static> = Sources {
        object: &Value::Null,
        stable: Some("db-1"),
        latest: Some("db-2"),
    };

    #[test]
    fn templates_are_taken_together_with_their_args() {
        let known = known(json!({
            "errors": {
                "metrics": [metric("errors", json!({"count": "{{args.times}}", "interval": "1m"}))],
                "args": [{"name": "times", "value": "3"}, {"name": "revision"}, {"name": "token", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                "templates": [{"templateName": "cluster-latency", "clusterScope": true}],
            },
            "cluster-latency": {"metrics": [metric("latency", json!({}))], "templates": [{"templateName": "errors"}]},
        }));
        let analysis = analysis(json!({
            "templates": [{"templateName": "errors"}, {"templateName": "errors"}],
            "args": [{"name": "revision", "valueFrom": {"podTemplateHashValue": "Latest"}}, {"name": "unused", "value": "x"}],
            "dryRun": [{"metricName": "latency"}],
        }));
        let spec = compose(&analysis, "a", Span::Step, &known, SOURCES).unwrap();
        let names: Vec<_> = spec.metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["errors", "latency"]);
        let values: Vec<_> = spec
            .args
            .iter()
            .map(|arg| (arg.name.as_str(), arg.value.as_deref()))
            .collect();
        assert_eq!(
            values,
            [("times", Some("3")), ("revision", Some("db-2")), ("token", None)]
        );
        assert_eq!(spec.dry_run.len(), 1);
        assert_eq!(filled(&spec).unwrap().metrics[0].effective_count(), Some(3));
    }

    #[rstest]
    #[case::missing(
        json!({"templates": [{"templateName": "gone"}]}),
        &["a.templates[0].templateName: there is no AnalysisTemplate gone"]
    )]
    #[case::missing_of_all(
        json!({"templates": [{"templateName": "errors", "clusterScope": true}]}),
        &["a.templates[0].templateName: there is no ClusterAnalysisTemplate errors"]
    )]
    #[case::none(json!({}), &["a.templates: is empty; it must name a template"])]
    #[case::same_metric(
        json!({"templates": [{"templateName": "errors"}, {"templateName": "again"}], "args": [{"name": "host", "value": "x"}]}),
        &[r#"a.templates[1]: AnalysisTemplate again has the metric "errors", as another template has"#]
    )]
    #[case::missing_arg(
        json!({"templates": [{"templateName": "errors"}]}),
        &[r#"a.args: the template needs the arg "host", and no value is given for it"#]
    )]
    #[case::unknown_arg(
        json!({"templates": [{"templateName": "unknown"}]}),
        &[r#"a.templates: the metric "unknown" asks for {{args.nobody}}, which is no arg of its template"#]
    )]
    #[case::endless(
        json!({"templates": [{"templateName": "endless"}]}),
        &[r#"a.templates: the metric "endless" has an interval and no count: a step would never end; give it a count"#]
    )]
    #[case::wrong(
        json!({"templates": [{"templateName": "wrong"}]}),
        &["a.templates[0]: AnalysisTemplate wrong: metrics[0].interval: \"soon\" is not a duration such as 30s, 5m or 1h30m",
          "a.templates[0]: AnalysisTemplate wrong: metrics[0].successCondition: \"result >\" is no condition: 1:9: expected a value, found the end"]
    )]
    #[case::wrong_in_the_second(
        json!({"templates": [{"templateName": "again"}, {"templateName": "hasty"}]}),
        &["a.templates[1]: AnalysisTemplate hasty: metrics[1].interval: \"1ms\" is shorter than 1s, the shortest there is"]
    )]
    #[case::same_metric_in_one(
        json!({"templates": [{"templateName": "twice"}]}),
        &[r#"a.templates[0]: AnalysisTemplate twice has the metric "errors", twice"#]
    )]
    #[case::no_such_revision(
        json!({"templates": [{"templateName": "errors"}], "args": [{"name": "host", "valueFrom": {"podTemplateHashValue": "Newest"}}]}),
        &[r#"a.args[0].valueFrom.podTemplateHashValue: "Newest" is not Stable or Latest"#]
    )]
    #[case::no_such_field(
        json!({"templates": [{"templateName": "errors"}], "args": [{"name": "host", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['nope']"}}}]}),
        &[r#"a.args[0].valueFrom.fieldRef.fieldPath: "metadata.labels['nope']" is no text, number or bool of this object"#]
    )]
    #[case::no_such_field_for_a_template(
        json!({"templates": [{"templateName": "reads"}]}),
        &[r#"a.templates: args team.valueFrom.fieldRef.fieldPath: "metadata.labels['nope']" is no text, number or bool of this object"#]
    )]
    #[case::a_field_that_is_there(
        json!({"templates": [{"templateName": "errors"}], "args": [{"name": "host", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['team']"}}}]}),
        &[]
    )]
    #[case::what_may_come_later(
        json!({"templates": [{"templateName": "errors"}], "args": [{"name": "host", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}]}),
        &[]
    )]
    #[case::labels(
        json!({"templates": [{"templateName": "again"}], "analysisRunMetadata": {"labels": {"a b": "c"}}}),
        &[r#"a.analysisRunMetadata.labels: "a b" is no name of a label"#]
    )]
    fn what_is_wrong_is_told_before_it_runs(#[case] of: Value, #[case] expected: &[&str]) {
        let known = known(json!({
            "errors": {"metrics": [metric("errors", json!({}))], "args": [{"name": "host"}]},
            "again": {"metrics": [metric("errors", json!({}))]},
            "unknown": {"metrics": [metric("unknown", json!({"successCondition": "{{args.nobody}}"}))]},
            "endless": {"metrics": [metric("endless", json!({"interval": "1m"}))]},
            "twice": {"metrics": [metric("errors", json!({})), metric("errors", json!({}))]},
            "hasty": {"metrics": [metric("well", json!({})), metric("hasty", json!({"interval": "1ms", "count": 2}))]},
            "reads": {
                "metrics": [metric("reads", json!({}))],
                "args": [{"name": "team", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['nope']"}}}],
            },
            "wrong": {"metrics": [metric("wrong", json!({"interval": "soon", "count": 1, "successCondition": "result >"}))]},
        }));
        assert_eq!(told(&known, of, Span::Step), expected);
    }

    #[test]
    fn an_analysis_beside_the_steps_may_go_on_for_ever() {
        let known = known(json!({"endless": {"metrics": [metric("endless", json!({"interval": "1m"}))]}}));
        let of = json!({"templates": [{"templateName": "endless"}]});
        assert_eq!(told(&known, of, Span::Background), Vec::<String>::new());
    }

    #[test]
    fn two_templates_may_not_disagree_about_an_arg() {
        let arg = |value: &str| json!({"metrics": [metric(value, json!({}))], "args": [{"name": "host", "value": value}]});
        let known = known(
            json!({"one": arg("a"), "two": arg("b"), "silent": {"metrics": [metric("c", json!({}))], "args": [{"name": "host"}]}}),
        );
        let both = |second: &str| json!({"templates": [{"templateName": "one"}, {"templateName": second}]});
        assert_eq!(
            told(&known, both("two"), Span::Step),
            [r#"a.templates[1]: the arg "host" has two different values"#]
        );
        assert_eq!(told(&known, both("silent"), Span::Step), Vec::<String>::new());
    }

    #[rstest]
    #[case(json!({"metrics": [metric("m", json!({"successCondition": "{{args.x}}"}))]}), "spec.metrics[0]: asks for {{args.x}}, which has no value")]
    #[case(json!({"metrics": [metric("m", json!({}))], "args": [{"name": "x"}]}), "")]
    #[case(json!({"metrics": []}), "spec.metrics: is empty; there must be a metric to measure")]
    fn a_run_that_cannot_be_measured_says_why(#[case] spec: Value, #[case] expected: &str) {
        let spec: AnalysisRunSpec = serde_json::from_value(spec).unwrap();
        let told = filled(&spec).map_or_else(|problems| problems[0].to_string(), |_| String::new());
        assert_eq!(told, expected);
    }
}
