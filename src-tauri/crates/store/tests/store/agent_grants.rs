//! What agents may do in every chat.

use crate::support::Fixture;

#[tokio::test]
async fn what_is_allowed_survives_and_is_replaced_as_a_whole() {
    let fixture = Fixture::new();
    let grants =
        |texts: &[&str]| -> Vec<String> { texts.iter().map(|text| (*text).to_owned()).collect() };
    {
        let store = fixture.store();
        assert!(store.agent_grants().await.unwrap().is_empty());
        let both = grants(&["b", "a"]);
        store.put_agent_grants(both).await.unwrap();
    }
    let store = fixture.store();
    assert_eq!(store.agent_grants().await.unwrap(), ["b", "a"]);
    store.put_agent_grants(grants(&["a"])).await.unwrap();
    assert_eq!(store.agent_grants().await.unwrap(), ["a"]);
    store.put_agent_grants(Vec::new()).await.unwrap();
    assert!(store.agent_grants().await.unwrap().is_empty());
}
