// Package v1 stands in for operator-sdk's Ansible plug-in, whose module the module proxy does not serve.
// It scaffolds nothing; `operator-sdk bundle validate` has no use for it.
package v1

import (
	"sigs.k8s.io/kubebuilder/v4/pkg/config"
	v3 "sigs.k8s.io/kubebuilder/v4/pkg/config/v3"
	"sigs.k8s.io/kubebuilder/v4/pkg/plugin"
)

// Plugin has what kubebuilder asks of every plug-in.
type Plugin struct{}

var _ plugin.Plugin = Plugin{}

// Name of the plug-in that this stands in for.
func (Plugin) Name() string { return "base.ansible.sdk.operatorframework.io" }

// Version of the plug-in that this stands in for.
func (Plugin) Version() plugin.Version { return plugin.Version{Number: 1} }

// SupportedProjectVersions may not be empty.
func (Plugin) SupportedProjectVersions() []config.Version { return []config.Version{v3.Version} }
