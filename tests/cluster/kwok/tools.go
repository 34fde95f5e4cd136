// SPDX-License-Identifier: GPL-3.0-or-later

//go:build tools

// Package kwok pins the program that plays nodes. It is not in the module beside this one: it does
// not build with the libraries of that Kubernetes.
package kwok

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
