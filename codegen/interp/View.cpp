//===- View.cpp - views and reinterpretations of buffers ------------------------------------===//

#include "codegen/interp/Memory.h"

using namespace mlir;

namespace qd::interp {

/// The number of an array that is this view; a new one where there is none yet.
static LaneValue number(Thread &thread, Array view) {
  std::deque<Array> &arrays = thread.block().arrays;
  auto isSame = [&](const Array &other) {
    return other.data == view.data && other.scalar == view.scalar && other.perElement == view.perElement &&
           other.extents == view.extents && other.strides == view.strides && other.access == view.access &&
           !other.isStatic();
  };
  size_t known = llvm::find_if(arrays, isSame) - arrays.begin();
  if (known == arrays.size())
    arrays.push_back(std::move(view));
  return LaneValue::of(known);
}

/// "a view of %x", also for a view of a view.
static std::string nameView(const Array &source) {
  return StringRef(source.name).starts_with("a view of ") ? source.name : "a view of " + source.name;
}

static std::optional<SmallVector<int64_t, 3>> readNumbers(Thread &thread, ArrayRef<int64_t> literals,
                                                          unsigned &nextOperand, StringRef what) {
  SmallVector<int64_t, 3> numbers;
  for (int64_t literal : literals) {
    unsigned operand = nextOperand;
    std::optional<int64_t> number = readNumber(thread, literal, nextOperand, what);
    if (number && *number < 0)
      thread.fail("has a " + what + " of " + llvm::Twine(*number) + ", expected at least 0", operand);
    if (!number || *number < 0)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

/// Elements of the source between a view's first and last one, along its only dimension; too many count as all.
static int64_t getReach(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  int64_t reach = 1;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
    int64_t product;
    if (size == 0)
      return 0;
    if (__builtin_mul_overflow(size - 1, stride, &product) || __builtin_add_overflow(reach, product, &reach))
      return INT64_MAX;
  }
  return reach;
}

static void runView(Thread &thread) {
  auto op = thread.op<ViewOp>();
  Array *source = findArray(thread, 0);
  if (!source)
    return;
  unsigned next = 1;
  auto begin = readNumbers(thread, op.getStaticIndices(), next, "subscript");
  auto sizes = begin ? readNumbers(thread, op.getStaticSizes(), next, "size") : std::nullopt;
  auto strides = sizes ? readNumbers(thread, op.getStaticStrides(), next, "stride") : std::nullopt;
  if (!strides)
    return;

  // The source's elements that the view covers, by dimension of the source.
  size_t rank = sizes->size(), sourceRank = source->extents.size();
  SmallVector<int64_t, 3> reach(sourceRank, 1), own;
  if (strides->empty() && rank <= sourceRank) {
    std::copy(sizes->begin(), sizes->end(), reach.end() - rank);
    own.assign(source->strides.end() - rank, source->strides.end());
  } else {
    if (strides->empty()) {
      strides->assign(rank, 1);
      for (size_t dim = rank - 1; dim > 0; --dim)
        if (__builtin_mul_overflow((*strides)[dim], (*sizes)[dim], &(*strides)[dim - 1]))
          (*strides)[dim - 1] = INT64_MAX;
    }
    reach[0] = getReach(*sizes, *strides);
    for (int64_t stride : *strides)
      own.push_back(int64_t(uint64_t(stride) * uint64_t(source->strides[0])));
  }
  bool isEmpty = llvm::is_contained(*sizes, 0);
  int64_t first = 0;
  for (size_t dim = 0; dim < sourceRank; ++dim) {
    if ((*begin)[dim] > source->extents[dim] || (!isEmpty && reach[dim] > source->extents[dim] - (*begin)[dim]))
      return thread.fail("covers " + llvm::Twine(reach[dim]) + " elements from " + llvm::Twine((*begin)[dim]) +
                             (sourceRank > 1 ? " along dimension " + llvm::Twine(dim) : llvm::Twine()) + ", beyond " +
                             source->name + ", which has " + llvm::Twine(source->extents[dim]) +
                             (sourceRank > 1 ? " there" : ""),
                         llvm::to_vector<2>(llvm::seq(1u, next)));
    first += (*begin)[dim] * source->strides[dim];
  }

  Array view;
  view.data = source->data + first * getStorageBytes(source->scalar);
  view.scalar = source->scalar;
  view.perElement = source->perElement;
  view.extents = *sizes;
  view.strides = own;
  view.access = source->access;
  view.name = nameView(*source);
  thread.out[0] = number(thread, std::move(view));
}

static void runReinterpret(Thread &thread) {
  Array *source = findArray(thread, 0);
  if (!source)
    return;
  Array dense;
  dense.setShape(source->scalar, source->extents);
  for (auto [extent, stride, expected] : llvm::zip_equal(source->extents, source->strides, dense.strides))
    if (extent > 1 && stride != expected * source->perElement)
      return thread.fail("takes " + source->name + ", whose elements do not stand side by side");
  Type element = cast<BufferType>(thread.outType()).getElementType();
  unsigned scalarBytes = getStorageBytes(getScalarOf(element));
  uint64_t excess = reinterpret_cast<uintptr_t>(source->data) % scalarBytes;
  if (excess)
    return thread.fail("takes " + source->name + ", which begins " + llvm::Twine(excess) +
                       " bytes past a multiple of " + llvm::Twine(scalarBytes));
  int64_t bytes = source->count() * source->perElement * getStorageBytes(source->scalar);
  Array view;
  view.data = source->data;
  view.setShape(element, {bytes / getStorageBytes(element)});
  view.access = source->access;
  view.name = nameView(*source);
  thread.out[0] = number(thread, std::move(view));
}

void addViewRules(RuleTable &table) {
  table.addThread<ViewOp>(runView);
  table.addThread<ReinterpretOp>(runReinterpret);
}

} // namespace qd::interp
