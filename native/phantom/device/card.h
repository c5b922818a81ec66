// What a card is, as far as a program can see it: the properties that choose kernels, workspaces and room.
// The cards are files of `key = value` lines in src/movie/phantom/cards, built into this library; Python reads the
// same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driver/types.h"

namespace movie::phantom {

struct Card {
    std::string name;  // as the driver names it
    int major = 0, minor = 0;
    int multiprocessors = 0;
    Bytes memory = 0;   // total, as cudaMemGetInfo reports
    Bytes context = 0;  // what a process takes before it allocates anything
    int shared_per_block = 48 * 1024;
    int shared_per_block_optin = 0;
    int shared_per_multiprocessor = 0;
    int shared_reserved_per_block = 1024;
    int threads_per_multiprocessor = 2048;
    int blocks_per_multiprocessor = 32;
    int registers = 65536;  // per block and per multiprocessor
    int l2_cache = 0;
    int bus_width = 0;     // bits
    int clock = 0;         // kHz
    int memory_clock = 0;  // kHz
    int copy_engines = 3;
    bool ecc = true;
    bool nvlink = false;         // peers reach each other
    bool virtual_memory = true;  // the driver maps memory; some virtual cards and slices of cards have no such driver
    bool fabric = false;         // exports fabric handles
    Bytes granularity = 2 * kMiB;
};

struct CardFile {
    std::string_view name, text;
};

// The cards that are built in, by the names of their files.
const std::vector<CardFile>& built_in_cards();
// Throws std::invalid_argument that says where the text is wrong.
Card parse_card(std::string_view text, const std::string& where);
// A built-in name, or a path (it has a '/'). Throws std::invalid_argument, listing the names, for an unknown one.
Card find_card(const std::string& name_or_path);

}  // namespace movie::phantom
