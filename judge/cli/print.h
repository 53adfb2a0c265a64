// SPDX-License-Identifier: Apache-2.0
// Results on stdout. Every function fails with a JudgeError if stdout cannot be written.
#pragma once

#include <string>
#include <vector>

#include "judge/base/json.h"
#include "judge/record/record.h"

namespace assay::cli {

/// Text for a terminal, which must not obey escape sequences that a submission printed or is named
/// by: other control characters than line feed and tab, and what is no UTF-8, become '?'.
std::string harmless(const std::string& text);
/// The same on one line, for messages.
std::string one_line(const std::string& text);

void print_text(const std::string& text);  ///< harmless(text)
void print_line(const std::string& line);  ///< the same and a line feed
void print_json(const Json& json);         ///< once per run: stdout holds one document
bool json_printed();

/// Columns padded to their widest cell; the first row is the header. A column whose cells (header
/// aside) all begin like a number is right-aligned.
void print_table(const std::vector<std::vector<std::string>>& rows);

/// 3 significant digits and a unit of its own: "4.21 us", "1.30 ms".
std::string time_text(double us);
/// "0.8312", or "-" where there is none.
std::string share_text(double share);
/// Codes of the findings that a reader should look at, without repetition; notes are left out.
std::string finding_codes(const std::vector<Finding>& findings, const std::string& shape = "");

/// A whole record for a person.
void print_record(const Record& record);

}  // namespace assay::cli
