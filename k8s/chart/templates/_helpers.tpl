{{- define "specroute.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that never change: what selectors use. Arguments: root, component. */}}
{{- define "specroute.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "specroute.labels" -}}
{{ include "specroute.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "specroute.secretName" -}}
{{- .Values.secrets.existing | default (include "specroute.fullname" .) -}}
{{- end -}}

{{- define "specroute.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "specroute.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* What gateways and agents share: where Redis is, and the cluster's secrets. */}}
{{- define "specroute.env" -}}
{{- if .Values.redis.enabled }}
- name: SPECROUTE_REDIS_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "specroute.secretName" . }}
      key: redis-password
- name: SPECROUTE_REDIS__URL
  value: redis://:$(SPECROUTE_REDIS_PASSWORD)@{{ include "specroute.fullname" . }}-redis:6379/0
{{- else if .Values.redis.urlFrom.secret }}
- name: SPECROUTE_REDIS__URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.redis.urlFrom.secret }}
      key: {{ .Values.redis.urlFrom.key }}
{{- else }}
- name: SPECROUTE_REDIS__URL
  value: {{ required "redis.url or redis.urlFrom.secret is needed when redis.enabled is false" .Values.redis.url | quote }}
{{- end }}
- name: SPECROUTE_AUTH__CLUSTER_SECRET
  valueFrom:
    secretKeyRef:
      name: {{ include "specroute.secretName" . }}
      key: cluster-secret
{{- end -}}

{{- define "specroute.imagePullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Keeps pods of one component apart: by zone, then by node. Arguments: root, component, pool. */}}
{{- define "specroute.spread" -}}
{{- $labels := include "specroute.selector" . }}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- $labels | nindent 6 }}
      {{- with $.pool }}
      specroute/pool: {{ . }}
      {{- end }}
{{- end }}
{{- end -}}

{{/* The gateway's config file. */}}
{{- define "specroute.gatewayConfig" -}}
{{- $models := list }}
{{- range .Values.models }}
{{- $models = append $models (dict "name" .name "aliases" (.aliases | default list)) }}
{{- end }}
{{- $keys := list (dict "label" "default" "key" "${SPECROUTE_API_KEY}") }}
{{- $server := dict "host" .Values.gateway.host "port" 8080 "shutdown_grace" .Values.gateway.longestStreamSeconds }}
{{- $base := dict "server" $server "auth" (dict "keys" (concat $keys .Values.apiKeys)) "models" $models }}
{{- $_ := set $base "telemetry" (dict "log_format" "json") }}
{{- $_ := set $base "dashboard" (dict "enabled" .Values.dashboard.enabled) }}
{{- if and .Values.dashboard.enabled .Values.dashboard.url }}
{{- $_ := set $base.dashboard "url" .Values.dashboard.url }}
{{- end }}
{{- /* Who asks for a model whose pool is at zero waits until a pod has been placed and has loaded. */ -}}
{{- range .Values.pools }}
{{- $keda := .keda | default dict }}
{{- if and $keda.enabled (eq (dig "minReplicas" 1 $keda | int) 0) }}
{{- if ne $.Values.gateway.readinessPath "/health" }}
{{- fail "a pool with keda.minReplicas 0 needs gateway.readinessPath: /health, or nothing could bring it back" }}
{{- end }}
{{- $before := dig "limits" "wait_for_worker" 0 $base | int }}
{{- $_ := set $base "limits" (dict "wait_for_worker" (max $before (add 60 (.loadSeconds | default 1800)))) }}
{{- end }}
{{- end }}
{{- toYaml (mergeOverwrite $base (deepCopy .Values.gateway.config)) }}
{{- end -}}

{{/* One pool's config file. Arguments: root, pool. Names come from the pod, so that they are unique
and tell an operator where to look; ports are fixed, so that policies can name them. */}}
{{- define "specroute.poolConfig" -}}
{{- $pool := .pool }}
{{- $models := list }}
{{- range .root.Values.models }}
{{- if .target }}
{{- $models = append $models (dict "name" .name "aliases" (.aliases | default list) "target" .target) }}
{{- end }}
{{- end }}
{{- $workers := list }}
{{- range $index, $worker := $pool.workers }}
{{- $name := ternary "${POD_NAME}" (printf "${POD_NAME}-%s" (required "workers of a pool with several need a name" (ternary "single" $worker.name (eq (len $pool.workers) 1)))) (eq (len $pool.workers) 1) }}
{{- $fixed := dict "name" $name "host" "${POD_IP}" "port" (add 9001 $index) "load_timeout" ($pool.loadSeconds | default 1800) }}
{{- $workers = append $workers (mergeOverwrite (deepCopy $worker) $fixed) }}
{{- end }}
{{- $base := dict "models" $models "workers" $workers "telemetry" (dict "log_format" "json") "dashboard" (dict "enabled" false) }}
{{- toYaml (mergeOverwrite $base (deepCopy ($pool.config | default dict))) }}
{{- end -}}
