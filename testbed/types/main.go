// Command types writes the shape of the built-in Kubernetes types as data: how each field is spelled in JSON, whether
// an empty value is written, how lists merge. It reads the Go types by reflection and the generated OpenAPI
// definitions, so the table is what the real server does, not what somebody believes. The embedded cluster reads it.
//
// Run by `cargo xtask generate types`.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	openapi "k8s.io/kubernetes/pkg/generated/openapi"
)

// roots are the kinds the embedded cluster serves, and what their requests carry.
var roots = []any{
	corev1.Namespace{}, corev1.Node{}, corev1.Pod{}, corev1.Service{}, corev1.ConfigMap{}, corev1.Secret{},
	corev1.ServiceAccount{}, corev1.PersistentVolumeClaim{}, corev1.PersistentVolume{}, corev1.Event{},
	corev1.Endpoints{}, corev1.Binding{}, corev1.PodTemplate{}, corev1.LimitRange{}, corev1.ResourceQuota{},
	appsv1.StatefulSet{}, appsv1.ControllerRevision{}, appsv1.DaemonSet{}, appsv1.Deployment{}, appsv1.ReplicaSet{},
	batchv1.Job{}, batchv1.CronJob{}, policyv1.PodDisruptionBudget{}, policyv1.Eviction{}, eventsv1.Event{},
	coordinationv1.Lease{}, storagev1.StorageClass{}, discoveryv1.EndpointSlice{},
	autoscalingv1.Scale{}, autoscalingv2.HorizontalPodAutoscaler{},
	authenticationv1.SelfSubjectReview{},
	authorizationv1.LocalSubjectAccessReview{}, authorizationv1.SelfSubjectAccessReview{},
	authorizationv1.SelfSubjectRulesReview{}, authorizationv1.SubjectAccessReview{},
	rbacv1.Role{}, rbacv1.RoleBinding{}, rbacv1.ClusterRole{}, rbacv1.ClusterRoleBinding{},
	apiextensionsv1.CustomResourceDefinition{}, metav1.DeleteOptions{},
}

// Types whose JSON is not that of their struct.
var leaves = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "time",
	reflect.TypeFor[metav1.MicroTime]():     "microtime",
	reflect.TypeFor[metav1.Duration]():      "duration",
	reflect.TypeFor[metav1.FieldsV1]():      "any",
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[intstr.IntOrString]():   "intstr",
	reflect.TypeFor[runtime.RawExtension](): "any",
	reflect.TypeFor[apiextensionsv1.JSON](): "any",
	// Each of these is a schema or a boolean or a list; the cluster reads schemas with its own eyes.
	reflect.TypeFor[apiextensionsv1.JSONSchemaProps]():        "any",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():  "any",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray](): "any",
}

type field struct {
	Type          string   `json:"type"`
	Wire          []int    `json:"wire,omitempty"`
	Pointer       bool     `json:"pointer,omitempty"`
	OmitEmpty     bool     `json:"omitEmpty,omitempty"`
	OmitZero      bool     `json:"omitZero,omitempty"`
	Required      bool     `json:"required,omitempty"`
	PatchStrategy string   `json:"patchStrategy,omitempty"`
	PatchMergeKey string   `json:"patchMergeKey,omitempty"`
	ListType      string   `json:"listType,omitempty"`
	ListMapKeys   []string `json:"listMapKeys,omitempty"`
	// Nil where the field's type decides.
	Atomic   *bool  `json:"atomic,omitempty"`
	Default  any    `json:"default,omitempty"`
	Enum     []any  `json:"enum,omitempty"`
	EnumText string `json:"enumText,omitempty"`
}

type table struct {
	types   map[string]map[string]field
	atomic  map[string]bool
	openapi map[string]common.OpenAPIDefinition
}

func main() {
	out := table{types: map[string]map[string]field{}, atomic: map[string]bool{}, openapi: definitions()}
	for _, root := range roots {
		out.add(reflect.TypeOf(root))
	}
	if err := out.write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func definitions() map[string]common.OpenAPIDefinition {
	reference := func(path string) spec.Ref { return spec.MustCreateRef(path) }
	all := openapi.GetOpenAPIDefinitions(reference)
	for name, definition := range apiextensionsopenapi.GetOpenAPIDefinitions(reference) {
		all[name] = definition
	}
	return all
}

// name is the definition's name in OpenAPI documents: io.k8s.api.apps.v1.StatefulSet.
func name(t reflect.Type) string {
	path := strings.Split(t.PkgPath()+"."+t.Name(), "/")
	host := strings.Split(path[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append([]string{strings.Join(host, ".")}, path[1:]...), ".")
}

func (out *table) add(t reflect.Type) {
	key := name(t)
	if _, known := out.types[key]; known {
		return
	}
	fields := map[string]field{}
	out.types[key] = fields
	definition := out.openapi[definitionKey(t, out.openapi)]
	if mapType, _ := definition.Schema.Extensions.GetString("x-kubernetes-map-type"); mapType == "atomic" {
		out.atomic[key] = true
	}
	required := map[string]bool{}
	for _, name := range definition.Schema.Required {
		required[name] = true
	}
	out.collect(t, nil, fields, definition.Schema.Properties, required)
}

// definitionKey finds a type among the definitions, which are keyed by Go path or, for newer code, by model name.
func definitionKey(t reflect.Type, all map[string]common.OpenAPIDefinition) string {
	for _, key := range []string{t.PkgPath() + "." + t.Name(), name(t)} {
		if _, known := all[key]; known {
			return key
		}
	}
	fmt.Fprintln(os.Stderr, "no OpenAPI definition for", t)
	os.Exit(1)
	return ""
}

// collect adds the fields of t. The members of an inlined struct are fields of its owner in JSON, and a message of its
// own in protobuf: wire is the way to them.
func (out *table) collect(t reflect.Type, wire []int, fields map[string]field, properties map[string]spec.Schema, required map[string]bool) {
	for i := range t.NumField() {
		member := t.Field(i)
		tag, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if tag == "-" || (!member.IsExported() && !member.Anonymous) {
			continue
		}
		if tag == "" && (strings.Contains(options, "inline") || member.Anonymous) {
			if inlined, within := member.Type, wireTag(member); within > 0 {
				out.collect(inlined, append(slices.Clone(wire), within), fields, properties, required)
			} else {
				// TypeMeta, which protobuf keeps outside the message.
				out.collect(inlined, []int{0}, fields, properties, required)
			}
			continue
		}
		property := properties[tag]
		described := field{
			OmitEmpty:     strings.Contains(options, "omitempty"),
			OmitZero:      strings.Contains(options, "omitzero"),
			Required:      required[tag],
			PatchStrategy: member.Tag.Get("patchStrategy"),
			PatchMergeKey: member.Tag.Get("patchMergeKey"),
			Default:       meaningful(property.Default),
		}
		described.Enum = property.Enum
		// What is said of each value, which Rust's own copy of the sentences leaves out.
		_, described.EnumText, _ = strings.Cut(property.Description, "\n\nPossible enum values:\n")
		described.ListType, _ = property.Extensions.GetString("x-kubernetes-list-type")
		if keys, ok := property.Extensions["x-kubernetes-list-map-keys"].([]any); ok {
			for _, key := range keys {
				described.ListMapKeys = append(described.ListMapKeys, key.(string))
			}
		}
		if mapType, ok := property.Extensions.GetString("x-kubernetes-map-type"); ok {
			atomic := mapType == "atomic"
			described.Atomic = &atomic
		}
		if tag := wireTag(member); tag > 0 && !slices.Equal(wire, []int{0}) {
			described.Wire = append(slices.Clone(wire), tag)
		}
		kind := member.Type
		if kind.Kind() == reflect.Pointer {
			described.Pointer = true
			kind = kind.Elem()
		}
		described.Type = out.spell(kind)
		fields[tag] = described
	}
}

// wireTag is the field's number in protobuf.
func wireTag(member reflect.StructField) int {
	parts := strings.Split(member.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0
	}
	tag, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return tag
}

// meaningful drops the defaults that OpenAPI writes for every value that is not a pointer: an empty one is no news.
func meaningful(value any) any {
	switch value := value.(type) {
	case nil:
		return nil
	case string:
		if value == "" {
			return nil
		}
	case map[string]any:
		if len(value) == 0 {
			return nil
		}
	case bool:
		if !value {
			return nil
		}
	}
	if reflect.ValueOf(value).IsZero() {
		return nil
	}
	return value
}

func (out *table) spell(t reflect.Type) string {
	if leaf, known := leaves[t]; known {
		return leaf
	}
	switch t.Kind() {
	case reflect.Pointer:
		return out.spell(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int, reflect.Int64:
		return "int64"
	case reflect.Uint8:
		return "uint8"
	case reflect.Float32, reflect.Float64:
		return "float64"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + out.spell(t.Elem())
	case reflect.Map:
		return "{}" + out.spell(t.Elem())
	case reflect.Struct:
		out.add(t)
		return name(t)
	}
	fmt.Fprintln(os.Stderr, "no spelling for", t)
	os.Exit(1)
	return ""
}

// write puts one type on a line, so that a change of a type is a change of a line.
func (out *table) write(file *os.File) error {
	var names []string
	for name := range out.types {
		names = append(names, name)
	}
	sort.Strings(names)
	var buffer bytes.Buffer
	fmt.Fprintf(&buffer, "{\"source\": %q, \"types\": {\n", "the Go types of testbed/go.mod, by cargo xtask generate types")
	for i, name := range names {
		line, err := json.Marshal(map[string]any{"fields": out.types[name], "atomic": out.atomic[name]})
		if err != nil {
			return err
		}
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Fprintf(&buffer, "%q: %s%s\n", name, line, comma)
	}
	buffer.WriteString("}}\n")
	_, err := file.Write(buffer.Bytes())
	return err
}
