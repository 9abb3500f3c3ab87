{{- define "yardmaster.name" -}}
{{ printf "%s-server" .Release.Name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "yardmaster.selector" -}}
app.kubernetes.io/name: yardmaster
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "yardmaster.labels" -}}
{{ include "yardmaster.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end }}

{{- define "yardmaster.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The name of a node in the cluster of Kubernetes, which outlives its pod. */}}
{{- define "yardmaster.node" -}}
$(POD_NAME).{{ include "yardmaster.name" . }}-nodes.{{ .Release.Namespace }}.svc
{{- end }}
