#!/usr/bin/env bash
# Rolls a StatefulSet of five pods through a canary and checks every step.
#
# Works with any cluster that kubectl reaches (KUBECONFIG, current context) and that has the RolloutPlugin definition and a
# running operator. Everything happens in one namespace, which is made if it is not there.
#
#   NAMESPACE  where (argo-rollouts)
#   TIMEOUT    seconds to wait for any one thing (120)
#   KEEP       set it to leave everything where it is at the end
set -euo pipefail

namespace=${NAMESPACE:-argo-rollouts}
timeout=${TIMEOUT:-120}
workload=test-statefulset
rollout=test-statefulset-rollout
made_namespace=

say() { printf '%s\n' "$*" >&2; }

kube() { kubectl --namespace "$namespace" "$@"; }

fail() {
  say "FAILED: $*"
  kube get rolloutplugin "$rollout" --output yaml >&2 || true
  kube get statefulset "$workload" --output wide >&2 || true
  kube get pods --selector "app=$workload" --show-labels >&2 || true
  exit 1
}

cleanup() {
  [[ -n ${KEEP:-} ]] && return
  say "cleaning up"
  kube delete rolloutplugin "$rollout" --ignore-not-found --wait --timeout "${timeout}s" >/dev/null || true
  kube delete statefulset "$workload" --ignore-not-found >/dev/null || true
  if [[ -n $made_namespace ]]; then
    kubectl delete namespace "$namespace" --wait=false >/dev/null || true
  fi
}

# wait_for WHAT JSONPATH VALUE: waits until a field has a value.
wait_for() {
  kube wait "$1" --for "jsonpath=$2=$3" --timeout "${timeout}s" >/dev/null || fail "$1: $2 is not $3"
}

# The pods, from the first to the last, by the tag of their image: "1.21 1.21 1.22".
images() {
  kube get pods --selector "app=$workload" --sort-by '{.metadata.name}' \
    --output 'jsonpath={range .items[*]}{.spec.containers[0].image}{" "}{end}' | sed 's/[^ ]*://g; s/ *$//'
}

# at_step INDEX PARTITION IMAGES: checks where a paused rollout stands, then lets it go on.
at_step() {
  local index=$1 partition=$2 expected=$3 seen
  wait_for "rolloutplugin/$rollout" '{.status.currentStepIndex}' "$index"
  wait_for "rolloutplugin/$rollout" '{.status.phase}' Paused
  wait_for "statefulset/$workload" '{.spec.updateStrategy.rollingUpdate.partition}' "$partition"
  seen=$(images)
  [[ $seen == "$expected" ]] || fail "step $index: pods run $seen instead of $expected"
  say "step $index: partition $partition, pods run $seen"
  kube patch rolloutplugin "$rollout" --subresource status --type merge \
    --patch '{"status": {"pauseConditions": null}}' >/dev/null
}

trap cleanup EXIT
if ! kubectl get namespace "$namespace" >/dev/null 2>&1; then
  kubectl create namespace "$namespace" >/dev/null
  made_namespace=yes
fi

say "1. a StatefulSet of five pods, none of which may be updated"
kube apply --filename - >/dev/null <<YAML
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: $workload
spec:
  serviceName: $workload
  replicas: 5
  selector:
    matchLabels:
      app: $workload
  template:
    metadata:
      labels:
        app: $workload
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: nginx
        image: nginx:1.21
        ports:
        - containerPort: 80
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      partition: 5
YAML
wait_for "statefulset/$workload" '{.status.readyReplicas}' 5

say "2. a new image"
kube set image "statefulset/$workload" nginx=nginx:1.22 >/dev/null

say "3. a RolloutPlugin"
kube apply --filename - >/dev/null <<YAML
apiVersion: argoproj.io/v1alpha1
kind: RolloutPlugin
metadata:
  name: $rollout
spec:
  workloadRef:
    apiVersion: apps/v1
    kind: StatefulSet
    name: $workload
  plugin:
    name: statefulset-plugin
  strategy:
    canary:
      steps:
      - setWeight: 20
      - pause: {}
      - setWeight: 40
      - pause: {}
      - setWeight: 60
      - pause: {}
      - setWeight: 80
      - pause: {}
      - setWeight: 100
YAML

say "4. step by step"
at_step 1 4 "1.21 1.21 1.21 1.21 1.22"
at_step 3 3 "1.21 1.21 1.21 1.22 1.22"
at_step 5 2 "1.21 1.21 1.22 1.22 1.22"
at_step 7 1 "1.21 1.22 1.22 1.22 1.22"

say "5. to the end"
wait_for "rolloutplugin/$rollout" '{.status.phase}' Successful
seen=$(images)
[[ $seen == "1.22 1.22 1.22 1.22 1.22" ]] || fail "pods run $seen"
say "every pod runs 1.22"
say "PASSED"
