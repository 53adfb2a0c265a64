// SPDX-License-Identifier: Apache-2.0
// The tables, version by version.
#pragma once

#include <span>

namespace assay {

/// SQL that takes a database from version i (the index) to version i + 1. What was released is
/// never edited: files of that version exist. A new figure in fields.h is a new row here.
std::span<const char* const> migrations();

}  // namespace assay
