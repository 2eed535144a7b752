// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// main() of the program, alone in its file: an executable that has its own main() and calls cli::run() leaves this
// one in the archive.
#include <fulcrum/cli.h>

int main(int argc, char** argv) { return fulcrum::cli::run(argc, argv); }
