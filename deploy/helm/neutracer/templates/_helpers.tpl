{{- /* SPDX-License-Identifier: GPL-3.0-or-later */ -}}
{{- define "neutracer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* Short enough for what is added to it, in labels of 63 characters. */ -}}
{{- define "neutracer.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "neutracer.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "neutracer.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Of a component: (list . "agent"). */ -}}
{{- define "neutracer.selector" -}}
{{- $top := index . 0 -}}
app.kubernetes.io/name: {{ include "neutracer.name" $top }}
app.kubernetes.io/instance: {{ $top.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "neutracer.labels" -}}
{{- $top := index . 0 -}}
{{ include "neutracer.selector" . }}
app.kubernetes.io/version: {{ $top.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $top.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $top.Chart.Name $top.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* The head of an object: (list . "agent" "name-suffix"). */ -}}
{{- define "neutracer.metadata" -}}
{{- $top := index . 0 -}}
name: {{ include "neutracer.fullname" $top }}-{{ index . 2 }}
namespace: {{ $top.Release.Namespace }}
labels:
  {{- include "neutracer.labels" (list $top (index . 1)) | nindent 2 }}
{{- end -}}

{{- /* Of an image value and a default tag: (list . $image $tag). */ -}}
{{- define "neutracer.image" -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default (index . 2) }}
{{- end -}}
{{- end -}}

{{- define "neutracer.ownImage" -}}
image: {{ include "neutracer.image" (list . .Values.image .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{- define "neutracer.pullSecrets" -}}
{{- with .Values.image.pullSecrets -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- /* What pods without privileges are: the level "restricted", and more. The user needs no name. */ -}}
{{- define "neutracer.restrictedPod" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "neutracer.restrictedContainer" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* Options of a program as its config file: keys in order, those of the chart first. */ -}}
{{- define "neutracer.config" -}}
{{- range $key, $value := . }}
{{ $key }}: {{ toJson $value }}
{{- end }}
{{- end -}}

{{- /* ---- the bus ---------------------------------------------------------------------------- */ -}}

{{- define "neutracer.kafkaAddress" -}}
{{ include "neutracer.fullname" . }}-kafka.{{ .Release.Namespace }}.svc:9092
{{- end -}}

{{- define "neutracer.busUrl" -}}
{{- $brokers := .Values.kafka.brokers | default (list (include "neutracer.kafkaAddress" .)) -}}
kafka://{{ join "," $brokers }}/{{ .Values.kafka.topicPrefix }}
{{- end -}}

{{- /* Who a program is to the brokers: (list . "agent"). A JSON object. */ -}}
{{- define "neutracer.sasl" -}}
{{- $sasl := (index . 0).Values.kafka.sasl -}}
{{- mergeOverwrite (pick $sasl "user" "existingSecret" "passwordKey") (get $sasl (index . 1) | default dict) | toJson -}}
{{- end -}}

{{- /* The options of a program that are about the bus: (list . "agent"). A JSON object. */ -}}
{{- define "neutracer.busOptions" -}}
{{- $top := index . 0 -}}
{{- $tls := $top.Values.kafka.tls -}}
{{- $sasl := include "neutracer.sasl" . | fromJson -}}
{{- $options := dict "bus" (include "neutracer.busUrl" $top) -}}
{{- if $tls.enabled -}}
{{- $ca := ternary "/run/neutracer/bus/ca.crt" "/etc/ssl/certs/ca-certificates.crt" (not (or (empty $tls.existingSecret) (empty $tls.caKey))) -}}
{{- $_ := set $options "bus-ca-file" $ca -}}
{{- if $tls.certKey -}}
{{- $_ := set $options "bus-cert-file" "/run/neutracer/bus/tls.crt" -}}
{{- $_ := set $options "bus-key-file" "/run/neutracer/bus/tls.key" -}}
{{- end -}}
{{- end -}}
{{- if $sasl.user -}}
{{- $_ := set $options "bus-user" $sasl.user -}}
{{- $_ := set $options "bus-password-file" "/run/neutracer/bus/password" -}}
{{- $_ := set $options "bus-sasl-mechanism" $top.Values.kafka.sasl.mechanism -}}
{{- end -}}
{{- toJson $options -}}
{{- end -}}

{{- /* The secrets of the bus as a volume, where there are any: (list . "agent"). */ -}}
{{- define "neutracer.busVolume" -}}
{{- $tls := (index . 0).Values.kafka.tls -}}
{{- $sasl := include "neutracer.sasl" . | fromJson -}}
{{- $sources := list -}}
{{- if and $tls.enabled $tls.existingSecret -}}
{{- $items := list -}}
{{- with $tls.caKey }}{{ $items = append $items (dict "key" . "path" "ca.crt") }}{{ end -}}
{{- with $tls.certKey }}{{ $items = append $items (dict "key" . "path" "tls.crt") }}{{ end -}}
{{- with $tls.keyKey }}{{ $items = append $items (dict "key" . "path" "tls.key") }}{{ end -}}
{{- $sources = append $sources (dict "secret" (dict "name" $tls.existingSecret "items" $items)) -}}
{{- end -}}
{{- if $sasl.user -}}
{{- $item := dict "key" $sasl.passwordKey "path" "password" -}}
{{- $sources = append $sources (dict "secret" (dict "name" $sasl.existingSecret "items" (list $item))) -}}
{{- end -}}
{{- if $sources -}}
- name: bus
  projected:
    defaultMode: 0440
    sources:
      {{- toYaml $sources | nindent 6 }}
{{- end -}}
{{- end -}}

{{- define "neutracer.busMount" -}}
{{- if include "neutracer.busVolume" . -}}
- {name: bus, mountPath: /run/neutracer/bus, readOnly: true}
{{- end -}}
{{- end -}}

{{- /* `neutracer topics create` and its options. */ -}}
{{- define "neutracer.topicsArgs" -}}
{{- $topics := .Values.kafka.topics -}}
- topics
- create
{{- range $key, $value := include "neutracer.busOptions" (list . "topics") | fromJson }}
- {{ printf "--%s=%v" $key $value | quote }}
{{- end }}
- --partitions={{ int $topics.partitions }}
- --replication={{ int $topics.replication }}
- {{ printf "--retention=%v" $topics.retention | quote }}
{{- end -}}

{{- /* ---- the aggregator --------------------------------------------------------------------- */ -}}

{{- define "neutracer.tokenSecret" -}}
{{ .Values.aggregator.token.existingSecret | default (printf "%s-token" (include "neutracer.fullname" .)) }}
{{- end -}}

{{- define "neutracer.nodeSecret" -}}
{{ .Values.signatures.existingSecret | default (printf "%s-node-secret" (include "neutracer.fullname" .)) }}
{{- end -}}

{{- define "neutracer.aggregatorUrl" -}}
{{ include "neutracer.scheme" . }}://{{ include "neutracer.fullname" . }}-aggregator.{{ .Release.Namespace }}.svc:{{ int .Values.aggregator.service.port }}
{{- end -}}

{{- define "neutracer.scheme" -}}
{{ ternary "https" "http" (not (empty .Values.aggregator.tls.existingSecret)) }}
{{- end -}}

{{- /* Not empty where no token is needed for /metrics without parameters. */ -}}
{{- define "neutracer.metricsOpen" -}}
{{- if eq (get .Values.aggregator.options "metrics-open" | toString) "true" }}yes{{ end -}}
{{- end -}}

{{- /* How the `neutracer` command of a pod reaches the Service, as its environment. */ -}}
{{- define "neutracer.commandEnv" -}}
- name: NT_SERVER
  value: {{ include "neutracer.aggregatorUrl" . }}
- name: NT_TOKEN_FILE
  value: /run/neutracer/token/token
{{- if .Values.aggregator.tls.existingSecret }}
# Trusts this certificate itself, whoever signed it.
- name: NT_CA_FILE
  value: /run/neutracer/tls/tls.crt
{{- end }}
{{- if .Values.aggregator.tls.clientSecret }}
- name: NT_CERT_FILE
  value: /run/neutracer/client/tls.crt
- name: NT_KEY_FILE
  value: /run/neutracer/client/tls.key
{{- end }}
{{- end -}}

{{- /* The client certificate of the command, as a volume and its mount. */ -}}
{{- define "neutracer.clientVolume" -}}
{{- with .Values.aggregator.tls.clientSecret }}
- name: client
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{- define "neutracer.clientMount" -}}
{{- if .Values.aggregator.tls.clientSecret }}
- {name: client, mountPath: /run/neutracer/client, readOnly: true}
{{- end }}
{{- end -}}

{{- /* Whether to make an object of an API that not all clusters have: (list . "auto" "monitoring.coreos.com/v1"). */ -}}
{{- define "neutracer.wants" -}}
{{- $want := index . 1 | toString -}}
{{- if or (eq $want "true") (and (eq $want "auto") ((index . 0).Capabilities.APIVersions.Has (index . 2))) -}}
yes
{{- end -}}
{{- end -}}

{{- /* ---- GPU time --------------------------------------------------------------------------- */ -}}

{{- define "neutracer.gpuTimeApi" -}}
{{- $found := "" -}}
{{- range list "v1alpha1" "v1beta1" "v1" -}}
{{- $api := printf "admissionregistration.k8s.io/%s" . -}}
{{- if $.Capabilities.APIVersions.Has (printf "%s/MutatingAdmissionPolicy" $api) }}{{ $found = $api }}{{ end -}}
{{- end -}}
{{- $found | required "gpuTime.enabled needs the kind MutatingAdmissionPolicy, which this cluster does not serve (Kubernetes before 1.36 serves it only if its API server enables it). Disable gpuTime and add libraries and variables to the pods by hand: docs/kubernetes.md, GPU time. Without a cluster, name the kind: --api-versions admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
{{- end -}}

{{- /* In CEL: a map of quantities, which may be numbers. */ -}}
{{- define "neutracer.quantities" -}}
{{- $all := dict -}}
{{- range $key, $value := . }}{{ $all = set $all $key (toString $value) }}{{ end -}}
{{- toJson $all -}}
{{- end -}}
