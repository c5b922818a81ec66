#include "phantom/device/card.h"

#include <charconv>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

namespace movie::phantom {

namespace {

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

struct Reader {
    std::map<std::string, std::string, std::less<>> values;
    std::string where;

    template <class T>
    void number(const char* key, T& out, bool required = false) {
        const auto found = values.find(key);
        if (found == values.end()) {
            if (required) throw std::invalid_argument(where + ": '" + key + "' is missing");
            return;
        }
        const std::string& text = found->second;
        long long read = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
        if (error != std::errc() || end != text.data() + text.size() || read < 0)
            throw std::invalid_argument(where + ": '" + key + " = " + text + "' is no whole number");
        out = static_cast<T>(read);
        values.erase(found);
    }

    void yes_or_no(const char* key, bool& out) {
        const auto found = values.find(key);
        if (found == values.end()) return;
        if (found->second != "yes" && found->second != "no")
            throw std::invalid_argument(where + ": '" + key + "' is yes or no");
        out = found->second == "yes";
        values.erase(found);
    }
};

}  // namespace

Card parse_card(std::string_view text, const std::string& where) {
    Reader reader{.values = {}, .where = where};
    std::istringstream lines{std::string(text)};
    std::string line;
    for (int row = 1; std::getline(lines, line); ++row) {
        const std::string_view content = trimmed(std::string_view(line).substr(0, line.find('#')));
        if (content.empty()) continue;
        const auto equals = content.find('=');
        if (equals == std::string_view::npos)
            throw std::invalid_argument(where + ":" + std::to_string(row) + ": 'key = value' is meant");
        reader.values.emplace(trimmed(content.substr(0, equals)), trimmed(content.substr(equals + 1)));
    }
    Card card;
    if (const auto name = reader.values.find("name"); name != reader.values.end()) {
        card.name = name->second;
        reader.values.erase(name);
    }
    if (card.name.empty() || card.name.size() > 255)
        throw std::invalid_argument(where + ": 'name' is missing or too long");
    reader.number("major", card.major, true);
    reader.number("minor", card.minor, true);
    reader.number("multiprocessors", card.multiprocessors, true);
    reader.number("memory", card.memory, true);
    reader.number("context", card.context, true);
    reader.number("shared_per_block", card.shared_per_block);
    reader.number("shared_per_block_optin", card.shared_per_block_optin, true);
    reader.number("shared_per_multiprocessor", card.shared_per_multiprocessor, true);
    reader.number("shared_reserved_per_block", card.shared_reserved_per_block);
    reader.number("threads_per_multiprocessor", card.threads_per_multiprocessor);
    reader.number("blocks_per_multiprocessor", card.blocks_per_multiprocessor);
    reader.number("registers", card.registers);
    reader.number("l2_cache", card.l2_cache, true);
    reader.number("bus_width", card.bus_width, true);
    reader.number("clock", card.clock, true);
    reader.number("memory_clock", card.memory_clock, true);
    reader.number("copy_engines", card.copy_engines);
    reader.number("granularity", card.granularity);
    reader.yes_or_no("ecc", card.ecc);
    reader.yes_or_no("nvlink", card.nvlink);
    reader.yes_or_no("virtual_memory", card.virtual_memory);
    reader.yes_or_no("fabric", card.fabric);
    if (!reader.values.empty())
        throw std::invalid_argument(where + ": unknown key '" + reader.values.begin()->first + "'");
    if (card.granularity < 4096 || (card.granularity & (card.granularity - 1)) != 0)
        throw std::invalid_argument(where + ": 'granularity' is a power of two of at least 4096");
    return card;
}

Card find_card(const std::string& name_or_path) {
    if (name_or_path.find('/') != std::string::npos) {
        std::ifstream file(name_or_path);
        std::ostringstream text;
        if (!file || !(text << file.rdbuf()))
            throw std::invalid_argument("cannot read the card's properties from " + name_or_path);
        return parse_card(text.str(), name_or_path);
    }
    std::string known;
    for (const CardFile& file : built_in_cards()) {
        if (file.name == name_or_path) return parse_card(file.text, std::string(file.name));
        known += (known.empty() ? "" : ", ") + std::string(file.name);
    }
    throw std::invalid_argument("unknown card '" + name_or_path + "' (known: " + known + ")");
}

}  // namespace movie::phantom
