{{/* Each takes a dict: root (the chart's context), part (scheduler, controller, admission). */}}

{{- define "pumice.image" -}}
{{- $basic := .root.Values.basic -}}
{{- $name := get $basic (printf "%s_image_name" .part) -}}
{{- $tag := coalesce (get $basic (printf "%s_image_tag_version" .part)) $basic.image_tag_version .root.Chart.AppVersion -}}
{{- if $basic.image_registry }}{{ $basic.image_registry }}/{{ end }}{{ $name }}:{{ $tag }}
{{- end }}

{{/* Labels of an object: those of the part, then those of all. */}}
{{- define "pumice.labels" -}}
{{- $own := get .root.Values.custom (printf "%s_%s" .part .key) | default dict -}}
{{- $all := .root.Values.custom.common_labels | default dict -}}
{{- with merge (dict) $own $all }}{{ toYaml . }}{{ end -}}
{{- end }}

{{- define "pumice.metadata" -}}
namespace: {{ .Release.Namespace }}
{{- with .Values.custom.common_labels }}
labels:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "pumice.common" -}}
{{- with .Values.custom.common_labels }}
labels:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What a pod's specification begins with; also takes account and app. */}}
{{- define "pumice.pod" -}}
{{- $custom := .root.Values.custom -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: true
priorityClassName: system-cluster-critical
{{- with .root.Values.basic.image_pull_secret }}
imagePullSecrets:
  - name: {{ . }}
{{- end }}
{{- with coalesce (get $custom (printf "%s_tolerations" .part)) $custom.default_tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with coalesce (get $custom (printf "%s_ns" .part)) $custom.default_ns }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with coalesce (get $custom (printf "%s_sc" .part)) $custom.default_sc }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .app }}
{{- with coalesce (get $custom (printf "%s_affinity" .part)) $custom.default_affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- else }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - podAffinityTerm:
          labelSelector:
            matchLabels:
              app: {{ .app }}
          topologyKey: kubernetes.io/hostname
        weight: 100
{{- end }}
{{- end }}
{{- end }}

{{/* What every container has; also takes csc, the name of its security context among the values. */}}
{{- define "pumice.container" -}}
{{- $custom := .root.Values.custom -}}
image: {{ include "pumice.image" . }}
imagePullPolicy: {{ .root.Values.basic.image_pull_policy }}
{{- with coalesce (get $custom .csc) $custom.default_csc }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "pumice.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: healthz}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: healthz}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: healthz}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* Two schedulers that both work would bind the same pods: more than one replica needs election. */}}
{{- define "pumice.election" -}}
{{- $custom := .root.Values.custom -}}
{{- $replicas := printf "%s_replicas" .part -}}
{{- if and (not $custom.leader_elect_enable) (gt (int (get $custom $replicas)) 1) }}
{{- fail (printf "custom.%s is %d and custom.leader_elect_enable is false: all of them would work at once; set custom.leader_elect_enable=true or custom.%s=1" $replicas (int (get $custom $replicas)) $replicas) }}
{{- end -}}
- --leader-elect={{ $custom.leader_elect_enable }}
{{- if $custom.leader_elect_enable }}
- --leader-elect-resource-namespace={{ .root.Release.Namespace }}
{{- end }}
{{- end }}

{{/* Refuses a scheduler configuration that no scheduler could read. */}}
{{- define "pumice.configuration" -}}
{{- $read := fromYaml .text }}
{{- with $read.Error }}
{{- fail (printf "custom.%s is not YAML: %s" $.name .) }}
{{- end }}
{{- if not (kindIs "string" $read.actions) }}
{{- fail (printf "custom.%s has no actions, such as actions: \"enqueue, allocate, backfill\"; check it with: pumice config check FILE" .name) }}
{{- end }}
{{- if not (kindIs "slice" $read.tiers) }}
{{- fail (printf "custom.%s has no list of tiers; check it with: pumice config check FILE" .name) }}
{{- end }}
{{- end }}

{{/* The flags of the dashboard. */}}
{{- define "pumice.ui" -}}
{{- $custom := .Values.custom -}}
- --ui=true
- --ui-address=:{{ $custom.ui_port }}
{{- range $custom.ui_hosts }}
- --ui-host={{ . }}
{{- end }}
- --ui-tls-cert-file=/pumice.ui/certificate/tls.crt
- --ui-tls-private-key-file=/pumice.ui/certificate/tls.key
{{- if $custom.ui_token_secret_name }}
- --ui-token-file=/pumice.ui/token/token
{{- else if $custom.ui_cluster_login }}
- --ui-cluster-login=true
{{- else }}
{{- fail "custom.ui_enable needs custom.ui_cluster_login or custom.ui_token_secret_name" }}
{{- end }}
{{- if $custom.ui_allow_actions }}
- --ui-allow-actions=true
{{- end }}
{{- end }}

{{/* A role and its binding; takes root, kind, namespace, name, account and rules. */}}
{{- define "pumice.role" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  {{- include "pumice.common" .root | nindent 2 }}
rules:
  {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}-role
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  {{- include "pumice.common" .root | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .root.Release.Namespace }}
{{ end }}

{{/* A service account with its roles; takes root, component, and the two lists of rules. */}}
{{- define "pumice.account" -}}
{{- $name := printf "%s-%s" .root.Release.Name .component -}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  {{- include "pumice.metadata" .root | nindent 2 }}
automountServiceAccountToken: false
{{ with .everywhere }}
{{- include "pumice.role" (dict "root" $.root "kind" "ClusterRole" "namespace" "" "name" $name "account" $name "rules" .) }}
{{- end }}
{{- with .at_home }}
{{- include "pumice.role" (dict "root" $.root "kind" "Role" "namespace" $.root.Release.Namespace "name" $name "account" $name "rules" .) }}
{{- end }}
{{- end }}

{{/* A service; takes root, name, app, port, target and whether it is scraped. */}}
{{- define "pumice.service" -}}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- if .scraped }}
  annotations:
    prometheus.io/path: /metrics
    prometheus.io/port: {{ .port | quote }}
    prometheus.io/scrape: "true"
  {{- end }}
  labels:
    app: {{ .app }}
    {{- with .root.Values.custom.common_labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- with .root.Values.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  {{- with .root.Values.service.ipFamilies }}
  ipFamilies:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - port: {{ .port }}
      protocol: TCP
      targetPort: {{ .target }}
      {{- if .scraped }}
      name: metrics
      {{- end }}
  selector:
    app: {{ .app }}
  type: ClusterIP
{{ end }}

{{/* The webhooks that are asked for, as a list in YAML. */}}
{{- define "pumice.webhooks" -}}
{{- $enabled := splitList "," (nospace .Values.custom.enabled_admissions) -}}
{{- range .Files.Get "files/webhooks.yaml" | fromYamlArray }}
{{- if has .path $enabled }}
- {{ toYaml . | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- end }}
