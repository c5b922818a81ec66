#include "trace/pickle_scan.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace movie {
namespace {

constexpr std::size_t kLongestInteger = 16;  // bytes: twice what any field needs

// What the scan keeps of a value. Of scalars only the kind; a container is an index into Machine::nodes_.
using Item = std::uint32_t;
constexpr Item kScalar = 0;
constexpr Item kString = 1;
constexpr Item kUnset = 2;  // in the memo: nothing was put here
constexpr Item kFirstNode = 3;

enum class Kind : std::uint8_t { list, dict, tuple };

struct Node {
    Kind kind;
    std::uint8_t depth;  // 1: holds scalars only
    bool stored;         // in another container, so it must not change any more: its depth is part of the other's
};

struct Fault {
    std::size_t offset;
    std::string problem;
};

// The opcodes that plain data needs. Text opcodes of protocols 0 and 1, bytes, sets, and POP and DUP are not among
// them.
// clang-format off
enum Opcode : unsigned char {
    kProto = 0x80, kFrame = 0x95, kStop = '.', kMark = '(',
    kNone = 'N', kTrue = 0x88, kFalse = 0x89,
    kInt1 = 'K', kInt2 = 'M', kInt4 = 'J', kLong1 = 0x8a, kLong4 = 0x8b, kFloat = 'G',
    kText1 = 0x8c, kText4 = 'X', kText8 = 0x8d,
    kEmptyTuple = ')', kTuple1 = 0x85, kTuple2 = 0x86, kTuple3 = 0x87, kTuple = 't',
    kEmptyList = ']', kList = 'l', kAppend = 'a', kAppends = 'e',
    kEmptyDict = '}', kDict = 'd', kSetItem = 's', kSetItems = 'u',
    kMemoize = 0x94, kPut1 = 'q', kPut4 = 'r', kGet1 = 'h', kGet4 = 'j',
};
// clang-format on

class Machine {
  public:
    Machine(std::string_view data, const ScanLimits& limits)
        : data_(data),
          most_items_(limits.items),
          deepest_(std::min<std::size_t>(limits.depth, std::numeric_limits<std::uint8_t>::max())),
          most_containers_((std::size_t{1} << 20) + data.size() / limits.bytes_per_container) {}

    Scan run() {
        Scan scan;
        try {
            while (step()) {
            }
        } catch (const Fault& fault) {
            scan.offset = fault.offset;
            scan.problem = fault.problem;
        }
        scan.items = items_;
        scan.containers = nodes_.size();
        for (const Node& node : nodes_) scan.depth = std::max<std::size_t>(scan.depth, node.depth);
        return scan;
    }

  private:
    [[noreturn]] void fail(std::string problem) const { throw Fault{opcode_at_, std::move(problem)}; }

    // The bytes.
    std::string_view take(std::size_t n) {
        if (n > data_.size() - at_) throw Fault{data_.size(), "the pickle ends early"};
        const std::string_view bytes = data_.substr(at_, n);
        at_ += n;
        return bytes;
    }
    std::size_t number(std::size_t width) {
        std::size_t value = 0, shift = 0;
        for (const char c : take(width)) {
            value |= std::size_t{static_cast<unsigned char>(c)} << shift;
            shift += 8;
        }
        return value;
    }
    std::string_view line() {
        const std::size_t end = std::min(data_.find('\n', at_), data_.size());
        const std::string_view text = data_.substr(at_, end - at_);
        at_ = std::min(end + 1, data_.size());
        return text;
    }

    // The stack. Values above the last mark can be taken, those below it wait for the mark to be taken first.
    [[nodiscard]] std::size_t fence() const { return marks_.empty() ? 0 : marks_.back(); }
    void push(Item item) {
        if (++items_ > most_items_) fail("more values than " + std::to_string(most_items_));
        stack_.push_back(item);
    }
    void need(std::size_t values) const {
        if (stack_.size() - fence() < values) fail("takes a value where there is none");
    }
    std::size_t take_mark() {
        if (marks_.empty()) fail("takes a mark where there is none");
        const std::size_t mark = marks_.back();
        marks_.pop_back();
        return mark;
    }

    // Containers.
    Item make(Kind kind) {
        if (nodes_.size() >= most_containers_) fail("more lists, dicts and tuples than a snapshot has");
        nodes_.push_back({kind, 1, false});
        return static_cast<Item>(nodes_.size() - 1) + kFirstNode;
    }
    void store(Item holder, Item item) {
        if (item < kFirstNode) return;
        if (item == holder) fail("a container that holds itself");
        Node& inner = nodes_[item - kFirstNode];
        if (inner.depth >= deepest_) fail("containers inside each other, deeper than " + std::to_string(deepest_));
        inner.stored = true;
        Node& outer = nodes_[holder - kFirstNode];
        outer.depth = std::max(outer.depth, static_cast<std::uint8_t>(inner.depth + 1));
    }
    // The list or dict that lies right below stack position `first`, to be filled with what lies from there on.
    Item holder(Kind kind, std::size_t first) const {
        if (first <= fence()) fail("takes a value where there is none");
        const Item item = stack_[first - 1];
        if (item < kFirstNode || nodes_[item - kFirstNode].kind != kind)
            fail(kind == Kind::list ? "appends to what is not a list" : "sets an item of what is not a dict");
        if (nodes_[item - kFirstNode].stored) fail("changes a container that another one holds already");
        return item;
    }
    void fill_list(Item list, std::size_t first) {
        for (std::size_t i = first; i < stack_.size(); ++i) store(list, stack_[i]);
        stack_.resize(first);
    }
    void fill_dict(Item dict, std::size_t first) {
        if ((stack_.size() - first) % 2 != 0) fail("a dict key without a value");
        for (std::size_t i = first; i < stack_.size(); i += 2) {
            if (stack_[i] != kString) fail("a dict key that is not a string");
            store(dict, stack_[i + 1]);
        }
        stack_.resize(first);
    }
    void push_tuple(std::size_t first) {
        if (first == stack_.size()) return push(kScalar);  // Python has one empty tuple for all
        const Item tuple = make(Kind::tuple);
        fill_list(tuple, first);
        push(tuple);
    }
    void push_tuple_of(std::size_t values) {
        need(values);
        push_tuple(stack_.size() - values);
    }

    // The memo.
    void put(std::size_t index) {
        need(1);
        // Python makes its memo as long as the largest index: no index beyond what was pushed so far.
        if (index > items_) fail("a memo index out of order");
        if (index >= memo_.size()) memo_.resize(index + 1, kUnset);
        if (memo_[index] == kUnset) ++memo_used_;
        memo_[index] = stack_.back();
    }
    void get(std::size_t index) {
        if (index >= memo_.size() || memo_[index] == kUnset) fail("fetches what the memo does not hold");
        push(memo_[index]);
    }

    // Scalars.
    void push_integer(std::size_t width) {
        if (width > kLongestInteger) fail("an integer of " + std::to_string(width) + " bytes");
        take(width);
        push(kScalar);
    }
    void push_text(std::size_t length) {
        texts_[0] = texts_[1];
        texts_[1] = take(length);
        ++texts_in_a_row_;
        push(kString);
    }

    bool step();
    void stop() const;
    [[noreturn]] void refuse(unsigned char opcode);

    std::string_view data_;
    std::size_t most_items_, deepest_, most_containers_;
    std::size_t at_ = 0, opcode_at_ = 0;
    std::size_t items_ = 0;
    std::vector<Item> stack_;
    std::vector<std::size_t> marks_;
    std::vector<Node> nodes_;
    std::vector<Item> memo_;
    std::size_t memo_used_ = 0;
    std::string_view texts_[2];  // the last two strings, and whether nothing else came since: a global is named by them
    std::size_t texts_in_a_row_ = 0;
};

// One opcode; false after the last.
bool Machine::step() {
    opcode_at_ = at_;
    const auto opcode = static_cast<unsigned char>(take(1).front());
    if ((opcode == kProto) != (opcode_at_ == 0)) fail("a pickle says its protocol at its start, and only there");
    const std::size_t texts = std::exchange(texts_in_a_row_, 0);
    switch (opcode) {
        case kProto:
            if (const std::size_t version = number(1); version < 2 || version > 5)
                fail("pickle protocol " + std::to_string(version) + ", not 2 to 5");
            return true;
        case kFrame:
            if (number(8) > data_.size() - at_) throw Fault{data_.size(), "the pickle ends early"};
            texts_in_a_row_ = texts;
            return true;
        case kStop:
            stop();
            return false;
        case kMark:
            if (marks_.size() == deepest_) fail("marks inside each other, deeper than " + std::to_string(deepest_));
            marks_.push_back(stack_.size());
            return true;
        case kNone:
        case kTrue:
        case kFalse:
            push(kScalar);
            return true;
        case kInt1:
            push_integer(1);
            return true;
        case kInt2:
            push_integer(2);
            return true;
        case kInt4:
            push_integer(4);
            return true;
        case kLong1:
            push_integer(number(1));
            return true;
        case kLong4:
            push_integer(number(4));
            return true;
        case kFloat:
            push_integer(8);
            return true;
        case kText1:
            texts_in_a_row_ = texts;
            push_text(number(1));
            return true;
        case kText4:
            texts_in_a_row_ = texts;
            push_text(number(4));
            return true;
        case kText8:
            texts_in_a_row_ = texts;
            push_text(number(8));
            return true;
        case kEmptyTuple:
            push_tuple_of(0);
            return true;
        case kTuple1:
            push_tuple_of(1);
            return true;
        case kTuple2:
            push_tuple_of(2);
            return true;
        case kTuple3:
            push_tuple_of(3);
            return true;
        case kTuple:
            push_tuple(take_mark());
            return true;
        case kEmptyList:
            push(make(Kind::list));
            return true;
        case kEmptyDict:
            push(make(Kind::dict));
            return true;
        case kList: {
            const std::size_t first = take_mark();
            const Item list = make(Kind::list);
            fill_list(list, first);
            push(list);
            return true;
        }
        case kDict: {
            const std::size_t first = take_mark();
            const Item dict = make(Kind::dict);
            fill_dict(dict, first);
            push(dict);
            return true;
        }
        case kAppend:
            need(2);
            fill_list(holder(Kind::list, stack_.size() - 1), stack_.size() - 1);
            return true;
        case kSetItem:
            need(3);
            fill_dict(holder(Kind::dict, stack_.size() - 2), stack_.size() - 2);
            return true;
        case kAppends: {
            const std::size_t first = take_mark();
            fill_list(holder(Kind::list, first), first);
            return true;
        }
        case kSetItems: {
            const std::size_t first = take_mark();
            fill_dict(holder(Kind::dict, first), first);
            return true;
        }
        case kMemoize:
            texts_in_a_row_ = texts;
            put(memo_used_);
            return true;
        case kPut1:
            texts_in_a_row_ = texts;
            put(number(1));
            return true;
        case kPut4:
            texts_in_a_row_ = texts;
            put(number(4));
            return true;
        case kGet1:
            get(number(1));
            return true;
        case kGet4:
            get(number(4));
            return true;
        default:
            texts_in_a_row_ = texts;
            refuse(opcode);
    }
}

void Machine::stop() const {
    if (!marks_.empty() || stack_.size() != 1) fail("ends with " + std::to_string(stack_.size()) + " values, not one");
    if (at_ != data_.size())
        throw Fault{at_, std::to_string(data_.size() - at_) + " bytes after the end of the pickle"};
}

void Machine::refuse(unsigned char opcode) {
    std::string module, name;
    if (opcode == 'c' || opcode == 'i') {  // GLOBAL, INST
        module = std::string(line().substr(0, 80));
        name = std::string(line().substr(0, 80));
    } else if (opcode == 0x93 && texts_in_a_row_ >= 2) {  // STACK_GLOBAL
        module = std::string(texts_[0].substr(0, 80));
        name = std::string(texts_[1].substr(0, 80));
    }
    if (!module.empty() || !name.empty())
        fail("names the global " + module + "." + name + ": a snapshot is plain data, this pickle would run code");
    static constexpr char kHex[] = "0123456789abcdef";
    fail(std::string("the opcode 0x") + kHex[opcode >> 4] + kHex[opcode & 15] +
         ", which plain dicts, lists, strings and numbers do not need");
}

}  // namespace

Scan scan_pickle(std::string_view data, const ScanLimits& limits) { return Machine(data, limits).run(); }

}  // namespace movie
