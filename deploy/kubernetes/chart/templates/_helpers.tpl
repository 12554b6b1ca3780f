{{- define "fairlead.labels" -}}
app.kubernetes.io/name: fairlead
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- define "fairlead.toml" -}}
{{- range $key, $value := .Values.settings }}
{{- $text := toString $value }}
{{- if kindIs "float64" $value }}
{{- /* Helm reads each number of a file as one of these, and would write 7776000000 as 7.776e+09. */}}
{{- if eq (floor $value) $value }}{{ $text = $value | int64 | toString }}{{ end }}
{{- end }}
{{ $key | quote }} = {{ $text | quote }}
{{- end }}
{{- end -}}
