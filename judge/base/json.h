// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace assay {
using Json = nlohmann::ordered_json;
}
