{{- /* Labels of all objects. Helm itself sets app.kubernetes.io/managed-by to the same value. */ -}}
{{- define "memcached-operator.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* The reference of an image. `image`: its section of the values. `root`: the root. */ -}}
{{- define "memcached-operator.image" -}}
{{- if .image.digest -}}
{{ printf "%s@%s" .image.repository .image.digest | quote }}
{{- else -}}
{{ printf "%s:%s" .image.repository (default .root.Chart.AppVersion .image.tag) | quote }}
{{- end -}}
{{- end -}}
