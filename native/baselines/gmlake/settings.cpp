#include "baselines/gmlake/settings.h"

#include <charconv>
#include <stdexcept>

namespace movie {
namespace {

template <class Number>
Number number(const std::string& name, const std::string& value, const char* wanted) {
    Number result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc{} || end != value.data() + value.size())
        throw std::invalid_argument(name + "=" + value + ": expected " + wanted);
    return result;
}

}  // namespace

GmlakeSettings gmlake_settings(const std::map<std::string, std::string>& options) {
    GmlakeSettings settings;
    for (const auto& [name, value] : options) {
        if (name == "frag") {
            settings.frag = number<Bytes>(name, value, "a size in bytes");
        } else if (name == "reuse") {
            settings.reuse = number<double>(name, value, "a number from 1 on");
            if (!(settings.reuse >= 1))
                throw std::invalid_argument(name + "=" + value + ": expected a number from 1 on");
        } else if (name == "auto_gc") {
            settings.auto_gc = number<Bytes>(name, value, "a size in bytes");
        } else {
            throw std::invalid_argument("gmlake has no option '" + name + "'");
        }
    }
    return settings;
}

}  // namespace movie
