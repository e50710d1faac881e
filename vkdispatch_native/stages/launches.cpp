#include "stages/launches.hpp"

#include <algorithm>
#include <cstddef>

#include "stages/frame.hpp"
#include "stages/segment.hpp"

namespace vkd {

namespace {

constexpr size_t kMostItems = 6;

void add(std::vector<Launch>& launches, const Dispatch& dispatch) {
  launches.push_back({dispatch.plan, 0});
}
void add(std::vector<Launch>& launches, const Copy& copy) {
  launches.push_back({nullptr, copy.size});
}
void add(std::vector<Launch>& launches, const ImageCopy& copy) {
  launches.push_back({nullptr, copy.region.size});
}
void add(std::vector<Launch>& launches, const ImagePair&) {
  launches.push_back({nullptr, 0});
}
void add(std::vector<Launch>&, const FullBarrier&) {}
void add(std::vector<Launch>&, const Timestamp&) {}

void add(std::vector<Launch>& launches, const Segment& segment) {
  launches.insert(launches.end(), segment.launches().begin(), segment.launches().end());
}
void add(std::vector<Launch>& launches, const Batch& batch) {
  batch.for_each_command([&](const auto& command) { add(launches, command); });
}

struct Item {
  std::string name;  // for a copy: what it copies
  bool kernel;
  size_t count;
};

std::string name_of(const Launch& launch) {
  if (launch.plan != nullptr) {
    return launch.plan->title();
  }
  return launch.bytes > 0 ? std::to_string(launch.bytes) + " bytes" : "an image";
}

std::string describe(const Item& item) {
  const std::string one = item.kernel ? "launch" : "copy";
  const std::string several = item.kernel ? "launches" : "copies";
  return (item.count == 1 ? "a " + one : std::to_string(item.count) + " " + several) + " of " + item.name;
}

std::vector<Item> items_of(const std::vector<Launch>& launches) {
  std::vector<Item> items;
  size_t last = 0;  // the item of the previous launch
  for (size_t i = 0; i < launches.size(); ++i) {
    const Launch& launch = launches[i];
    // Most launches repeat the previous one: no need to compare names.
    if (i == 0 || launch.plan != launches[i - 1].plan || launch.bytes != launches[i - 1].bytes) {
      const std::string name = name_of(launch);
      const bool kernel = launch.plan != nullptr;
      const auto same = std::find_if(items.begin(), items.end(), [&](const Item& item) {
        return item.kernel == kernel && item.name == name;
      });
      last = static_cast<size_t>(same - items.begin());
      if (same == items.end()) {
        items.push_back({name, kernel, 0});
      }
    }
    ++items[last].count;
  }
  return items;
}

// Returns the marks in the order in which the device reaches them.
std::vector<Mark> marks_of(const std::vector<Pending>& pending) {
  std::vector<Mark> marks;
  for (const Pending& each : pending) {
    if (each.frame == nullptr) {
      continue;
    }
    auto own = each.frame->marks().begin();
    const auto end = each.frame->marks().end();
    for (const Batch::Entry& entry : each.batch->entries()) {
      if (entry.kind == Batch::Kind::replay) {
        const std::vector<Mark>& replayed = entry.segment->marks();
        marks.insert(marks.end(), replayed.begin(), replayed.end());
      } else if (entry.kind == Batch::Kind::dispatch && own != end && own->plan == entry.dispatch.plan) {
        marks.push_back(*own++);  // otherwise it was skipped
      }
    }
  }
  return marks;
}

// What was running, according to the marks. A segment that is replayed several times has the same marks each
// time, so the first one is used.
std::string describe_marks(const Checkpoints::Reached& reached, const std::vector<Mark>& marks) {
  const auto find = [&](auto from, uint32_t number) {
    return std::find_if(from, marks.end(), [&](const Mark& mark) { return mark.number == number; });
  };
  const auto passed = find(marks.begin(), reached.passed);
  auto first = passed == marks.end() ? marks.begin() : passed;
  auto last = find(first, reached.begun);
  if (last == marks.end()) {
    if (passed == marks.end()) {
      return {};
    }
    last = first;
  }
  std::vector<Launch> running;
  std::transform(first, last + 1, std::back_inserter(running),
                 [](const Mark& mark) { return Launch{mark.plan, 0}; });
  if (running.size() == 1) {
    return "it was running " + last->plan->title() + ", launch " + std::to_string(last - marks.begin() + 1) +
           " of " + std::to_string(marks.size());
  }
  return "it was running " + describe_launches(running);
}

void append(std::string& text, const char* what, const std::string& more) {
  if (!more.empty()) {
    text += (text.empty() ? "" : "; ") + (what + more);
  }
}

}  // namespace

std::vector<Launch> launches_of(const std::vector<Command>& commands) {
  std::vector<Launch> launches;
  for (const Command& command : commands) {
    std::visit([&](const auto& each) { add(launches, each); }, command);
  }
  return launches;
}

std::string describe_launches(const std::vector<Launch>& launches) {
  const std::vector<Item> items = items_of(launches);
  // "and 1 more command" would be less informative than the command itself.
  const size_t shown = items.size() <= kMostItems + 1 ? items.size() : kMostItems;
  size_t left = 0;
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i < shown) {
      text += (i == 0 ? "" : ", ") + describe(items[i]);
    } else {
      left += items[i].count;
    }
  }
  return left == 0 ? text : text + " and " + std::to_string(left) + " more commands";
}

std::string describe_launches(const Batch& batch) {
  std::vector<Launch> launches;
  add(launches, batch);
  return describe_launches(launches);
}

std::string describe_launches(const std::vector<Pending>& pending) {
  std::vector<Launch> launches;
  for (const Pending& each : pending) {
    add(launches, *each.batch);
  }
  return describe_launches(launches);
}

std::string describe_work(Device& device, VkQueue handle, size_t queue, bool lost,
                          const std::vector<Pending>& pending) noexcept {
  try {
    std::string text;
    if (const Checkpoints* checkpoints = device.checkpoints()) {
      append(text, "", describe_marks(checkpoints->read(handle, queue, lost), marks_of(pending)));
    }
    append(text, "not finished: ", describe_launches(pending));
    return text;
  } catch (...) {  // out of memory for the text
    return {};
  }
}

std::string describe_cause(const Device& device, bool idle) noexcept {
  try {
    std::string text;
    append(text, "the driver says: ", describe_fault(device));
    const Diagnosis& diagnosis = device.diagnosis();
    if (!idle && diagnosis.marks != diagnosis.possible) {
      append(text, "", "VKDISPATCH_CHECKPOINTS=1 finds out which kernel it was");
    }
    return text;
  } catch (...) {  // out of memory for the text
    return {};
  }
}

}  // namespace vkd
