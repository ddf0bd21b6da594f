from tenuto.compaction.files import (
    FileOperations,
    collect_files,
    format_file_lists,
    strip_file_lists,
    with_file_lists,
)
from tenuto.protocol.entry import BranchSummaryEntry
from tenuto.protocol.message import CompactionDetails, DiffView, FileUse, ToolResultMessage


def touched(*files: FileUse, ui: tuple[DiffView, ...] = ()) -> ToolResultMessage:
    return ToolResultMessage(call_id="c", name="edit", parts=(), files=files, ui=ui)


def test_files_come_from_results_diffs_branches_and_the_tracker():
    entries = [
        touched(FileUse(path="a.py", op="read"), FileUse(path="b.py", op="read")),
        touched(FileUse(path="b.py", op="edit")),
        touched(ui=(DiffView(path="new.py", diff="+x", created=True),)),
        BranchSummaryEntry(summary="s", from_seq=1, details={"read_files": ["r.py"], "modified_files": ["m.py"]}),
    ]
    kept = [touched(FileUse(path="tail.py", op="read"))]
    tracker = {
        "tail.py": FileUse(path="tail.py", op="read"),
        "seen.py": FileUse(path="seen.py", op="read"),
        "gone.py": FileUse(path="gone.py", op="delete"),
    }
    files = collect_files(entries, kept, None, tracker)
    assert set(files.read) == {"a.py", "r.py", "seen.py"}
    assert set(files.modified) == {"b.py", "new.py", "m.py", "gone.py"}


def test_lists_accumulate_over_rounds_and_a_modified_file_is_not_repeated_as_read():
    first = collect_files([touched(FileUse(path="a.py", op="read"))], [], None, {})
    second = collect_files([touched(FileUse(path="b.py", op="write"))], [], first.details(), {})
    third = collect_files([touched(FileUse(path="a.py", op="edit"))], [], second.details(), {})
    assert third.details() == CompactionDetails(read_files=(), modified_files=("a.py", "b.py"))


def test_the_text_is_sorted_one_path_a_line_and_leaves_empty_lists_out():
    assert format_file_lists(FileOperations(read=("z.py", "a.py"))) == "<read-files>\na.py\nz.py\n</read-files>"
    assert format_file_lists(FileOperations()) == ""


def test_only_the_newest_hundred_are_in_the_text_and_all_in_the_details():
    files = FileOperations(modified=tuple(f"f{number:03}.py" for number in range(250)))
    listed = format_file_lists(files)
    assert "f249.py" in listed
    assert "f150.py" in listed
    assert "f149.py" not in listed
    assert len(files.details().modified_files) == 250


def test_lists_are_stripped_before_an_update_and_added_again():
    files = FileOperations(read=("a.py",), modified=("b.py",))
    summary = with_file_lists("## Goal\nx", files)
    assert summary.count("<read-files>") == summary.count("<modified-files>") == 1
    assert strip_file_lists(summary) == "## Goal\nx"
    assert with_file_lists(summary, files) == summary
    assert strip_file_lists("notes\n\n<read-files>\nnever closed.py") == "notes"
