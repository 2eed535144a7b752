// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Every public header.
#pragma once

#include <fulcrum/abi.h>
#include <fulcrum/backends.h>
#include <fulcrum/cli.h>
#include <fulcrum/core.h>
#include <fulcrum/diagnose.h>
#include <fulcrum/executor.h>
#include <fulcrum/machine.h>
#include <fulcrum/measure.h>
#include <fulcrum/model.h>
#include <fulcrum/ops.h>
#include <fulcrum/record.h>
#include <fulcrum/report.h>
#include <fulcrum/stats.h>
#include <fulcrum/trace.h>
