// SPDX-License-Identifier: GPL-3.0-or-later

//go:build tools

// Package workflows pins the program that checks the workflows of GitHub.
package workflows

import (
	_ "github.com/rhysd/actionlint/cmd/actionlint"
)
